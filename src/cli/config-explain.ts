import { type ExitCode, usageError } from '../base/errors.ts';
import { explain } from '../kubeadm/explain/explain.ts';
import { renderExplanation } from '../kubeadm/explain/render-explanation.ts';
import { loadCatalogue, NEWEST_MINOR } from '../kubelet/catalogue.ts';
import type { CommandOptions } from './command.ts';
import { readMinor } from './minor-option.ts';
import { flagText } from './read-options.ts';
import type { Services } from './services.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** The oldest kubelet there is anything to tell about. */
const OLDEST_EXPLAINED = 10;

/** `config explain [NAME]`: a field, a flag or a feature gate. */
export async function runExplain(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  if (args.length > 1) throw usageError('one field, flag or feature gate is explained at a time');
  const version = flagText(options, 'kubernetesVersion');
  const minor = version === undefined ? NEWEST_MINOR : readMinor(version, 'kubernetes-version', OLDEST_EXPLAINED);
  const explanation = explain(args[0] ?? '', {
    catalogue: await loadCatalogue(),
    minor,
    recursive: options.recursive === true,
  });
  const format = formatOf(options);
  services.output.stdout(format === 'text' ? renderExplanation(explanation) : renderDocument(explanation, format));
  return 0;
}
