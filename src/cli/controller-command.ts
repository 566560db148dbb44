import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { CommandOptions, On } from './command.ts';
import { defineClusterApi } from './controller-cluster-api-command.ts';
import { defineControllerInstall } from './controller-install-command.ts';
import { defineControllerRun } from './controller-run-command.ts';
import { addSections } from './help-layout.ts';
import { flagChoice } from './option-values.ts';
import type { Services } from './output/services.ts';
import { outputOption } from './output-options.ts';

/** `controller`, `controller install`, `controller uninstall`, `controller crd`, `controller cluster-api`. */
export function defineController(controller: Command, on: On): void {
  defineControllerRun(controller, on);
  defineControllerInstall(controller, on);
  defineClusterApi(controller, on);
  const crd = controller
    .command('crd')
    .description('Print the CustomResourceDefinition of rollouts (KubeletConfigRollout)')
    .addOption(outputOption(['yaml', 'json']));
  addSections(on(crd, definitionRequest, printDefinition), { examples: '  kubeletadm controller crd | kubectl apply -f -' });
}

function definitionRequest(args: readonly string[], options: CommandOptions): { readonly format: 'yaml' | 'json' } {
  if (args.length > 0) throw usageError(`controller crd takes no arguments: ${args.join(' ')}`);
  return { format: flagChoice(options, 'output', ['yaml', 'json']) };
}

async function printDefinition({ output }: Services, { format }: { readonly format: 'yaml' | 'json' }): Promise<ExitCode> {
  const [{ rolloutDefinition }, { renderDocument }] = await Promise.all([
    import('../rollouts/api/crd.ts'),
    import('./output/show-document.ts'),
  ]);
  output.document(renderDocument(rolloutDefinition(), format));
  return 0;
}
