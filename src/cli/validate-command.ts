import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { CommandOptions, On } from './command.ts';
import type { ConfigValidateRequest } from './config-validate.ts';
import { addSections, DEFAULT_KUBERNETES_MINOR } from './help-layout.ts';
import { flagChoice, flagList, flagText } from './option-values.ts';
import { addSshOptions, addTargetOption, collect, withoutEffect } from './options.ts';
import { outputOption, REPORT_FORMATS } from './output-options.ts';
import { hostsRequest } from './request-parts.ts';

export const VALIDATE = 'Validate files by their kind; the exit code is 2 if a file is invalid';

/** `validate FILE...` and `config validate FILE...`. */
export function defineValidate(validate: Command, on: On): void {
  validate
    .argument('[file...]', "kubeadm documents, KubeletConfigurations, overlays, fleet files or saved plans; '-' for standard input")
    .option('--config <file>', 'configuration file, an alternative to the argument (repeatable)', collect)
    .addOption(withoutEffect('--allow-experimental-api'))
    .option('--allow-deprecated-api', 'suppress warnings about deprecated API versions')
    .option(
      '--kubernetes-version <version>',
      `kubelet version to validate KubeletConfigurations for, e.g. 1.34 (default: kubernetesVersion of the file, otherwise ${DEFAULT_KUBERNETES_MINOR})`,
    )
    .option('--lenient', 'report unknown and duplicate fields of a KubeletConfiguration as warnings')
    .option(
      '--kubelet <path>',
      'also check the files with this kubelet binary; it runs once for each file, exits after the check, and runs no pods',
    )
    .addOption(outputOption(REPORT_FORMATS));
  addTargetOption(validate, 'also validate with the kubelet binary and the kubelet flags of this host (repeatable)');
  on(addSshOptions(validate), validateRequest, async (...args) => (await import('./config-validate.ts')).runValidate(...args));
  addSections(validate, {
    examples: '  kubeletadm validate init.yaml kubelet.yaml\n  kubeletadm validate fleet.yaml\n  kubeletadm validate plan.json',
  });
}

function validateRequest(args: readonly string[], options: CommandOptions): ConfigValidateRequest {
  const files = [...args, ...flagList(options, 'config')];
  if (files.length === 0) throw usageError('no file to check', "Pass a file, or '-' for standard input");
  return {
    files,
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
    lenient: options.lenient === true,
    allowDeprecated: options.allowDeprecatedApi === true,
    kubelet: flagText(options, 'kubelet'),
    hosts: hostsRequest(options),
    format: flagChoice(options, 'output', REPORT_FORMATS),
  };
}
