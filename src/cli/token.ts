import { AppError, type ExitCode, usageError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { Secret } from '../base/text/secret.ts';
import { planDocument } from '../host/plan/document.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isBootstrapToken, isCertificateKey, TOKEN_FORM } from '../kubeadm/config/bootstrap-token.ts';
import { applyTokenDefaults } from '../kubeadm/config/defaults.ts';
import { mergeTokenFlags } from '../kubeadm/config/flags.ts';
import { emptyConfig, type LoadedConfig, loadConfig } from '../kubeadm/config/load.ts';
import type { BootstrapToken } from '../kubeadm/config/model.ts';
import { type JoinsAsControlPlane, joinCommand } from '../kubeadm/token/join-command.ts';
import { renderTokenList } from '../kubeadm/token/token-list.ts';
import { type CompleteToken, tokenSecret } from '../kubeadm/token/token-secret.ts';
import { createTokens, deleteTokens, listTokens, requireFreeIds } from '../kubeadm/workflows/bootstrap-tokens.ts';
import type { CommandOptions } from './command.ts';
import { requireValid } from './load-config-file.ts';
import { openCluster } from './open-cluster.ts';
import { flagList, flagText, kubeadmFlags, verbosityOf } from './read-options.ts';
import type { Services } from './services.ts';
import { formatOf } from './show-document.ts';
import { renderPlan } from './show-plan.ts';

/** `token generate`: needs no cluster. */
export async function runTokenGenerate(services: Services): Promise<ExitCode> {
  services.output.stdout(`${(await services.newToken()).reveal()}\n`);
  return 0;
}

/** `token list`. */
export async function runTokenList(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const { tokens, problems } = await withCluster(services, options, null, listTokens);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  for (const message of problems) reporter.report({ level: 'warning', code: 'TOKEN_SECRET_INVALID', message });
  const format = formatOf(options);
  const list = renderTokenList(tokens, format, services.clock.now());
  if (format === 'text') services.output.stdout(list);
  else services.output.document(list);
  return 0;
}

/** `token create [TOKEN]`: prints the token or, with `--print-join-command`, the command that joins by it. */
export async function runTokenCreate(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const controlPlane = readCertificateKey(options);
  const config = await readTokens(services, args[0], options);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  for (const warning of requireValid(config)) reporter.report({ level: 'warning', ...warning });
  const tokens = await completeTokens(services, config.init?.bootstrapTokens ?? []);
  const first = tokens[0] as CompleteToken;
  const dryRun = options.dryRun === true;
  const opened = await openCluster(services, options, { dryRun, staged: false, writes: reporter });
  try {
    // Whatever may refuse does so before the token is there.
    const line =
      options.printJoinCommand === true
        ? joinCommand(requireAuthority(opened.apiServer), first.token, controlPlane).reveal()
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
      services.output.stdout(renderPlan({ ...plan, hosts: [] }, formatOf(options)));
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
export async function runTokenDelete(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const ids = args.map((text, i) => {
    if (/^[a-z0-9]{6}$/.test(text)) return text;
    if (isBootstrapToken(text)) return text.slice(0, 6);
    // It may be a token with a slip of the pen: it is not repeated.
    throw usageError(`argument ${i + 1} of token delete is neither a token id nor a token`, `Write [a-z0-9]{6} or ${TOKEN_FORM}`);
  });
  const dryRun = options.dryRun === true;
  const onDeleted = (id: string): void => services.output.stdout(`bootstrap token "${id}" deleted${dryRun ? ' (dry run)' : ''}\n`);
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  await withCluster(services, options, reporter, (cluster) => deleteTokens(cluster, [...new Set(ids)], { onDeleted, dryRun }));
  return 0;
}

async function withCluster<T>(
  services: Services,
  options: CommandOptions,
  writes: Reporter | null,
  use: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const { cluster } = await openCluster(services, options, { dryRun: false, staged: false, writes });
  try {
    return await use(cluster as Cluster);
  } finally {
    await cluster?.close();
  }
}

/** With the key of uploaded certificates the command is that of a control plane. */
function readCertificateKey(options: CommandOptions): JoinsAsControlPlane | null {
  const key = flagText(options, 'certificateKey');
  if (key === undefined) return null;
  if (options.printJoinCommand !== true) throw usageError('cannot use --certificate-key without --print-join-command');
  if (isCertificateKey(key)) return { certificateKey: new Secret(key) };
  throw usageError('--certificate-key: this is not 64 hexadecimal digits', 'init phase upload-certs --upload-certs prints one');
}

/** The options that make up a token. */
const TOKEN_OPTIONS = ['description', 'groups', 'ttl', 'usages'] as const;

/** One token of the command line, or those of a file: as in kubeadm never both, for a flag would not say which token it is about. */
async function readTokens(services: Services, token: string | undefined, options: CommandOptions): Promise<LoadedConfig> {
  const file = flagText(options, 'config');
  if (file === undefined) {
    const flags = { ...kubeadmFlags(options), ...(token === undefined ? {} : { 'bootstrap-token': token }) };
    return mergeTokenFlags(emptyConfig(), flags);
  }
  const mixed = TOKEN_OPTIONS.filter((name) => flagText(options, name) !== undefined || flagList(options, name).length > 0);
  const given = [...(token === undefined ? [] : ['a token']), ...mixed.map((name) => `--${name}`)];
  if (given.length > 0) throw usageError(`can not mix --config with ${given.join(', ')}`, 'Write it into bootstrapTokens of the file');
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
