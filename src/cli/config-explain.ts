import type { ExitCode } from '../base/errors.ts';
import { type Explanation, explain } from '../kubeadm/explain/explain.ts';
import { renderExplanation } from '../kubeadm/explain/render-explanation.ts';
import { DEFAULT_MINOR } from '../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../kubelet/catalogue/load-catalogue.ts';
import { readMinor } from '../kubelet/minor-option.ts';
import type { Services } from './output/services.ts';
import { type ReadFormat, renderDocument } from './output/show-document.ts';

/** The oldest minor in the catalogue. */
const OLDEST_EXPLAINED = 10;

export interface ConfigExplainRequest {
  /** Empty: all fields. */
  readonly name: string;
  /** Undefined: `DEFAULT_MINOR`. */
  readonly kubernetesVersion: string | undefined;
  /** Include nested members. */
  readonly recursive: boolean;
  readonly format: ReadFormat;
}

/** `config explain [NAME]`: a field, a flag or a feature gate. */
export async function runExplain(services: Services, request: ConfigExplainRequest): Promise<ExitCode> {
  const explanation = await explainName(request);
  const { format } = request;
  services.output.stdout(format === 'text' ? renderExplanation(explanation) : renderDocument(explanation, format));
  return 0;
}

/**
 * Explains a field, a flag or a feature gate.
 * @throws AppError EXPLAIN_UNKNOWN_NAME (exit code 2)
 */
export async function explainName({ name, recursive, kubernetesVersion: version }: ConfigExplainRequest): Promise<Explanation> {
  const minor = version === undefined ? DEFAULT_MINOR : readMinor(version, 'kubernetes-version', OLDEST_EXPLAINED);
  return explain(name, { catalogue: await loadCatalogue(), minor, recursive });
}
