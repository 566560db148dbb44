import type { ExitCode } from '../base/errors.ts';
import { renderTokenList } from '../kubeadm/token/token-list.ts';
import {
  type CreateTokensRequest,
  createClusterTokens,
  type DeleteTokensRequest,
  deleteClusterTokens,
  listClusterTokens,
} from '../kubeadm/use-cases/cluster-tokens.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { Services } from './services.ts';
import type { OutputRequest } from './show-document.ts';
import { type PlanRequest, renderPlan } from './show-plan.ts';

/** `token generate`: needs no cluster. */
export async function runTokenGenerate(services: Services): Promise<ExitCode> {
  services.output.stdout(`${(await services.newToken()).reveal()}\n`);
  return 0;
}

export interface TokenListRequest {
  readonly cluster: KubeconfigRequest;
  readonly output: OutputRequest;
}

export interface TokenCreateRequest extends Omit<CreateTokensRequest, 'dryRun'> {
  readonly plan: PlanRequest;
}

export interface TokenDeleteRequest extends DeleteTokensRequest {
  readonly verbosity: number;
}

/** `token list`. */
export async function runTokenList(services: Services, { cluster, output }: TokenListRequest): Promise<ExitCode> {
  const { format, verbosity } = output;
  const { tokens, problems } = await listClusterTokens(services, cluster);
  const reporter = services.reporter({ verbosity, format: 'text' });
  for (const message of problems) reporter.report({ level: 'warning', code: 'TOKEN_SECRET_INVALID', message });
  const list = renderTokenList(tokens, format, services.clock.now());
  if (format === 'text') services.output.stdout(list);
  else services.output.document(list);
  return 0;
}

/**
 * `token create [TOKEN]`: prints the token or, with `--print-join-command`, the join command with the token.
 */
export async function runTokenCreate(services: Services, { plan, ...request }: TokenCreateRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity: plan.verbosity, format: 'text' });
  const created = await createClusterTokens(services, { ...request, dryRun: plan.dryRun }, reporter);
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
