import { AppError, type ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { planDocument } from '../host/plan/document.ts';
import type { Cluster } from '../kube/cluster.ts';
import { applyTokenDefaults } from '../kubeadm/config/defaults.ts';
import type { Flags } from '../kubeadm/config/flag-values.ts';
import { mergeTokenFlags } from '../kubeadm/config/flags.ts';
import { emptyConfig, type LoadedConfig, loadConfig } from '../kubeadm/config/load.ts';
import type { BootstrapToken } from '../kubeadm/config/model.ts';
import { type JoinsAsControlPlane, joinCommand } from '../kubeadm/token/join-command.ts';
import { renderTokenList } from '../kubeadm/token/token-list.ts';
import { type CompleteToken, tokenSecret } from '../kubeadm/token/token-secret.ts';
import { requireValid } from '../kubeadm/use-cases/load-config-file.ts';
import { type KubeconfigRequest, openCluster } from '../kubeadm/use-cases/open-cluster.ts';
import { createTokens, deleteTokens, listTokens, requireFreeIds } from '../kubeadm/workflows/bootstrap-tokens.ts';
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

export interface TokenCreateRequest {
  /** A file with the tokens to create. */
  readonly config: string | undefined;
  /** Without a file, what makes up the one token. */
  readonly flags: Flags;
  readonly printsJoinCommand: boolean;
  /** Print the join command of a control plane; null: of a worker. */
  readonly controlPlane: JoinsAsControlPlane | null;
  readonly cluster: KubeconfigRequest;
  readonly plan: PlanRequest;
}

export interface TokenDeleteRequest {
  readonly ids: readonly string[];
  readonly dryRun: boolean;
  readonly cluster: KubeconfigRequest;
  readonly verbosity: number;
}

/** `token list`. */
export async function runTokenList(services: Services, { cluster, output }: TokenListRequest): Promise<ExitCode> {
  const { format, verbosity } = output;
  const { tokens, problems } = await withCluster(services, cluster, null, listTokens);
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
export async function runTokenCreate(services: Services, request: TokenCreateRequest): Promise<ExitCode> {
  const { dryRun, format, verbosity } = request.plan;
  const config = await readTokens(services, request);
  const reporter = services.reporter({ verbosity, format: 'text' });
  for (const warning of requireValid(config)) reporter.report({ level: 'warning', ...warning });
  const tokens = await completeTokens(services, config.init?.bootstrapTokens ?? []);
  const first = tokens[0] as CompleteToken;
  const opened = await openCluster(services, request.cluster, { dryRun, staged: false, writes: reporter });
  try {
    // Every check runs before the token is created.
    const line = request.printsJoinCommand
      ? joinCommand(requireAuthority(opened.apiServer), first.token, request.controlPlane).reveal()
      : first.token.reveal();
    const secrets = tokens.map((token) => tokenSecret(token, services.clock.now()));
    if (opened.cluster !== null) await requireFreeIds(opened.cluster, tokens.map(idOf));
    if (dryRun) {
      const changes = secrets.map((object) => ({ kind: 'create-object', object, reason: 'it is a new token' }) as const);
      const { hosts: _, ...plan } = planDocument(
        [{ name: '', phases: [{ phase: 'token', plan: { changes } }] }],
        opened.warnings,
        opened.cluster,
      );
      services.output.stdout(renderPlan({ ...plan, hosts: [] }, format));
      return 0;
    }
    await createTokens(opened.cluster as Cluster, secrets);
    services.output.stdout(`${line}\n`);
    return 0;
  } finally {
    await opened.cluster?.close();
  }
}

/** `token delete ID|TOKEN...`. */
export async function runTokenDelete(services: Services, request: TokenDeleteRequest): Promise<ExitCode> {
  const { ids, dryRun, verbosity } = request;
  const onDeleted = (id: string): void => services.output.stdout(`bootstrap token "${id}" deleted${dryRun ? ' (dry run)' : ''}\n`);
  const reporter = services.reporter({ verbosity, format: 'text' });
  await withCluster(services, request.cluster, reporter, (cluster) => deleteTokens(cluster, ids, { onDeleted, dryRun }));
  return 0;
}

async function withCluster<T>(
  services: Services,
  request: KubeconfigRequest,
  writes: Reporter | null,
  use: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const { cluster } = await openCluster(services, request, { dryRun: false, staged: false, writes });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}

async function readTokens(services: Services, { config: file, flags }: TokenCreateRequest): Promise<LoadedConfig> {
  if (file === undefined) return mergeTokenFlags(emptyConfig(), flags);
  return loadConfig(await services.input.readText(file), file, {
    kinds: ['InitConfiguration', 'ClusterConfiguration', 'KubeletConfiguration'],
  });
}

async function completeTokens(services: Services, written: readonly BootstrapToken[]): Promise<readonly CompleteToken[]> {
  const tokens = written.length === 0 ? [{}] : written;
  const fresh = await Promise.all(tokens.filter((each) => each.token === undefined).map(() => services.newToken()));
  return applyTokenDefaults(tokens, fresh);
}

function idOf({ token }: CompleteToken): string {
  return token.reveal().slice(0, 6);
}

function requireAuthority<T>(apiServer: T | null): T {
  if (apiServer !== null) return apiServer;
  const hint = 'Put certificate-authority-data into the kubeconfig: a node needs the CA to verify the cluster';
  throw new AppError({ code: 'KUBECONFIG_NO_CA', message: 'no CA certificates found in the kubeconfig', hint }, { exitCode: 2 });
}
