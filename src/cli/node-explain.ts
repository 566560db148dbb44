import type { ExitCode } from '../base/errors.ts';
import { type ExplainNodeRequest, explainNode } from '../fleet/use-cases/explain-node.ts';
import { renderNodeExplanation } from '../kubelet/effective/render-node-explanation.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface NodeExplainRequest extends ExplainNodeRequest {
  readonly format: DocumentFormat | 'wide';
}

/** `node explain HOST|NODE [FIELD]`: each effective value, and the layer it is from. */
export async function runNodeExplain(services: Services, request: NodeExplainRequest): Promise<ExitCode> {
  const { field, format } = request;
  const explanation = await explainNode(services, request);
  const isDocument = format === 'json' || format === 'yaml';
  services.output.stdout(
    isDocument ? renderDocument(explanation, format) : renderNodeExplanation(explanation, format === 'wide' || field !== undefined),
  );
  return 0;
}
