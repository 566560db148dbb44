import type { ExitCode } from '../base/errors.ts';
import { renderTokenList, renderTokenTable, tokenDocument } from '../kubeadm/token/token-list.ts';
import {
  type CreateTokensRequest,
  createClusterTokens,
  type DeleteTokensRequest,
  deleteClusterTokens,
  listClusterTokens,
} from '../kubeadm/use-cases/cluster-tokens.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { Services } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import { type PlanRequest, renderPlan } from './output/show-plan.ts';
import type { TableRequest } from './show-table.ts';

/** `token generate`: needs no cluster. */
export async function runTokenGenerate(services: Services): Promise<ExitCode> {
  services.output.stdout(`${(await services.newToken()).reveal()}\n`);
  return 0;
}

export interface TokenListRequest {
  readonly cluster: KubeconfigRequest;
  readonly output: TableRequest & { readonly verbosity: number };
}

export interface TokenCreateRequest extends CreateTokensRequest {
  readonly plan: PlanRequest;
}

export interface TokenDeleteRequest extends DeleteTokensRequest {
  readonly verbosity: number;
}

/** `token list`. */
export async function runTokenList(services: Services, { cluster, output }: TokenListRequest): Promise<ExitCode> {
  const { format, headers, verbosity } = output;
  const { tokens, problems } = await listClusterTokens(services, cluster);
  const reporter = services.reporter({ verbosity, format: 'text' });
  for (const message of problems) reporter.report({ level: 'warning', code: 'TOKEN_SECRET_INVALID', message });
  // Each token is a document of its own, as in kubeadm.
  if (typeof format === 'object') services.output.stdout(tokens.map((token) => renderDocument(tokenDocument(token), format)).join(''));
  else if (format === 'name') services.output.stdout(tokens.map(({ id }) => `secret/bootstrap-token-${id}\n`).join(''));
  else if (format === 'text' || format === 'wide') services.output.stdout(renderTokenTable(tokens, services.clock.now(), { headers }));
  else services.output.document(renderTokenList(tokens, format));
  return 0;
}

/**
 * `token create [TOKEN]`: prints the token or, with `--print-join-command`, the join command with the token.
 */
export async function runTokenCreate(services: Services, { plan, ...request }: TokenCreateRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const created = await createClusterTokens(services, request, reporter);
  services.output.stdout('plan' in created ? renderPlan(created.plan, plan.format) : `${created.line.reveal()}\n`);
  return 0;
}

/** `token delete ID|TOKEN...`. */
export async function runTokenDelete(services: Services, request: TokenDeleteRequest): Promise<ExitCode> {
  const onDeleted = (id: string): void => services.output.stdout(`bootstrap token "${id}" deleted${request.dryRun ? ' (dry run)' : ''}\n`);
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  await deleteClusterTokens(services, request, { reporter, onDeleted });
  return 0;
}
