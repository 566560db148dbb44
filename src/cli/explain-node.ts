import type { ExitCode } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { ExplainNodeRequest } from '../fleet/use-cases/explain-node.ts';
import type { Takeover } from '../kubeadm/workflows/node/explain-takeover.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';

export interface NodeExplainRequest extends ExplainNodeRequest {
  /** Show what a takeover of the host would change. */
  readonly takeover: boolean;
  readonly format: ReadFormat | 'wide';
}

/** `node explain HOST|NODE [FIELD]`: each effective value, and the layer it is from. */
export async function runNodeExplain(services: Services, request: NodeExplainRequest): Promise<ExitCode> {
  const [{ explainNode, explainNodeTakeover }, { renderNodeExplanation }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/explain-node.ts'),
    import('../kubelet/effective/render.ts'),
    import('./output/show-document.ts'),
  ]);
  const { field, format, target, connection } = request;
  if (request.takeover && 'address' in target) {
    const takeover = await explainNodeTakeover(services, { address: target.address, file: request.file, connection });
    services.output.stdout(format === 'text' || format === 'wide' ? takeoverText(takeover) : renderDocument(takeover, format));
    return 0;
  }
  const explanation = await explainNode(services, request);
  services.output.stdout(
    format === 'text' || format === 'wide'
      ? renderNodeExplanation(explanation, format === 'wide' || field !== undefined)
      : renderDocument(explanation, format),
  );
  return 0;
}

function takeoverText({ host, kubernetesVersion, program, items }: Takeover): string {
  return joinLines([
    `${host}: kubelet ${kubernetesVersion} at ${program}. Nothing was changed. A takeover with join would have these effects:`,
    '',
    ...renderTable([['WHAT', 'NOW IN', 'EFFECT'], ...items.map(({ what, source, effect }) => [what, source || '-', effect])]),
  ]);
}
