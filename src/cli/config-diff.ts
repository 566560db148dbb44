import { type ExitCode, formatProblem } from '../base/errors.ts';
import { type CompareRequest, compareConfigs } from '../fleet/use-cases/compare-configs.ts';
import { diffDocument, renderDiff } from '../kubelet/effective/render.ts';
import type { Services } from './output/services.ts';
import { type DocumentFormat, renderDocument } from './output/show-document.ts';

export interface ConfigDiffRequest extends CompareRequest {
  readonly format: DocumentFormat;
  /** Exit code 6 if they differ. */
  readonly failsIfDifferent: boolean;
}

/** `config diff A B`: exit code 6 with `--exit-code` when the effective configurations differ. */
export async function runDiff(services: Services, request: ConfigDiffRequest): Promise<ExitCode> {
  const { format, failsIfDifferent } = request;
  const { before, after, diff } = await compareConfigs(services, request, (warning) =>
    services.output.stderr(`warning: ${formatProblem(warning)}\n`),
  );
  services.output.stdout(format === 'text' ? renderDiff(diff, before, after) : renderDocument(diffDocument(diff, before, after), format));
  return failsIfDifferent && diff.differences.length > 0 ? 6 : 0;
}
