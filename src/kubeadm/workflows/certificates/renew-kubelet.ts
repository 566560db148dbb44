import { AppError, isAppError } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import type { Templates } from '../../../codec/render-template.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { initSystem } from '../../../host/facts/init-system.ts';
import { operatingSystem } from '../../../host/facts/operating-system.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { Change, HostChange } from '../../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../../host/plan/diff-file.ts';
import { revertChanges } from '../../../host/plan/revert.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import { discoveryCluster, parseKubeconfig, resolveContext } from '../../../kube/kubeconfig.ts';
import { CA_CERT, FLAGS_ENV, KUBEADM_TMP_DIR, KUBELET_CLIENT_PEM, KUBELET_CONF } from '../../../kube/well-known.ts';
import { observeHealthzUrl, observeKubeletWords } from '../../../kubelet/effective/healthz-url.ts';
import { clientIdentity } from '../../../kubelet/facts/kubelet-identity.ts';
import { type HealthTarget, waitForHealthyKubelet } from '../../../kubelet/health/wait-healthy.ts';
import { DEFAULT_TOKEN_GROUPS } from '../../config/defaults.ts';
import { nodeNameOf } from '../../node-identity/node-name-of.ts';
import { NODE_SETTINGS_PATH } from '../../node-settings/node-settings.ts';
import { createTemporaryToken, deleteTemporaryToken } from '../../phases/bootstrap-token.ts';
import { kubeletWaitBootstrap, type WaitBootstrapInput, waitForIdentity } from '../../phases/kubelet-wait-bootstrap.ts';
import { tokenSecret } from '../../token/token-secret.ts';
import { type ApiServerTarget, bootstrapFiles } from '../node/bootstrap-files.ts';
import { challengeHost, identifyBy, type NodeTrust } from '../node/identify-node.ts';
import { readJoinedConfig } from '../node/joined-config.ts';

interface RenewKubeletOptions {
  readonly templates: Templates;
  /** The given bootstrap token; null: a temporary token is created. */
  readonly token: Secret | null;
  readonly newToken: () => Promise<Secret>;
  /** Server of an administrator's kubeconfig; takes precedence over kubelet.conf of the host. */
  readonly apiServer: ApiServerTarget | null;
  /** Renews a valid certificate, too. */
  readonly force: boolean;
  /** Identifies the Node with the operator's credentials; null: none were given, the cluster is not changed. */
  readonly trust: NodeTrust | null;
  /** Node name given by the operator; null: none. */
  readonly nodeName: string | null;
  readonly tlsBootstrapMs: number;
  readonly kubeletHealthCheckMs: number;
}

const FACTS = combineFacts({
  os: operatingSystem,
  identity: clientIdentity,
  files: fileFacts([KUBELET_CONF, FLAGS_ENV, NODE_SETTINGS_PATH, CA_CERT]),
});
/** Covers all timeouts of a run. */
const TOKEN_TTL = '30m0s';

const NAME = 'renew-kubelet';

/**
 * Repeats the TLS bootstrap of the kubelet: its kubeconfig and certificate are moved to another directory and
 * replaced by a bootstrap kubeconfig. If no certificate is issued they are restored without a kubelet
 * restart, because a restarted kubelet might fail to start.
 */
const renewKubelet = definePhase<
  {
    /** Null: the certificate is valid and nothing is changed; `noop` gives the reason. */
    readonly bootstrapConf: DesiredFile | null;
    readonly noop: string;
    /** Directory for the previous credentials of the kubelet. */
    readonly backupDirectory: string;
    readonly health: HealthTarget;
    readonly wait: WaitBootstrapInput;
  },
  {
    readonly files: ReadonlyMap<string, FileFact | null>;
    readonly init: 'systemd' | 'openrc' | null;
  }
>({
  name: NAME,
  short: 'Repeat the TLS bootstrap of the kubelet',
  observe: ({ host, signal }, { bootstrapConf }) => {
    const paths = [KUBELET_CONF, KUBELET_CLIENT_PEM, ...(bootstrapConf === null ? [] : [bootstrapConf.path])];
    return observe(host, combineFacts({ files: fileFacts(paths), init: initSystem }), signal);
  },
  plan: ({ files, init }, { bootstrapConf, noop, backupDirectory }) => {
    if (bootstrapConf === null) return { changes: [], noop };
    const reason = 'the kubelet repeats its TLS bootstrap';
    const aside = [KUBELET_CONF, KUBELET_CLIENT_PEM].filter((path) => (files.get(path) ?? null) !== null);
    const write = diffFile(files.get(bootstrapConf.path) ?? null, bootstrapConf);
    const changes: readonly Change[] = [
      ...(aside.length === 0
        ? []
        : [
            {
              kind: 'make-directory',
              path: backupDirectory,
              mode: 0o700,
              owner: 'root:root',
              reason: 'for the previous credentials of the kubelet',
            } as const,
          ]),
      ...(write === null ? [] : [write]),
      ...aside.map((path) => ({ kind: 'move-file', path, to: `${backupDirectory}/${path.replace(/^.*\//, '')}`, reason }) as const),
      ...(init === 'systemd' ? [{ kind: 'restart-unit', unit: 'kubelet', reason } as const] : []),
    ];
    return { changes };
  },
  verify: async (context, { bootstrapConf, health, wait }, { init }) => {
    if (bootstrapConf === null || init !== 'systemd') return;
    await waitForIdentity(context, wait);
    await waitForHealthyKubelet(context, NAME, health);
  },
  undo: (_, applied: readonly HostChange[]) => revertChanges(applied),
});

/**
 * Renews an expired or lost client certificate of a kubelet through a bootstrap token. kubeadm can only reset the
 * host and join it again.
 */
export const renewKubeletWorkflow: Workflow<RenewKubeletOptions, Awaited<ReturnType<typeof prepareRenewal>>['input']> = {
  name: 'certs renew-kubelet',
  phases: [
    createTemporaryToken.select((input) => input.token),
    renewKubelet.select((input) => input.renew),
    kubeletWaitBootstrap.select((input) => input.renew.wait),
    deleteTemporaryToken.select((input) => input.token),
  ],
  prepare: prepareRenewal,
};

async function prepareRenewal(context: PhaseContext, options: RenewKubeletOptions) {
  const { facts, asked } = await inspectHost(context, options);
  const { os, identity, files } = facts;
  const text = (path: string): string | null => files.get(path)?.content ?? null;
  const host = context.host.name;
  const { signal } = context;
  await readJoinedConfig(context, await observeKubeletWords(context.host, signal));
  const needed = options.force || identity.state !== 'usable';
  // A bootstrap token allows requesting the certificate of any Node, so the host must prove its Node first.
  const node = needed && asked !== null ? await identifyBy(context, asked, asked.desired) : null;
  const nodeName =
    node?.claim?.nodeName ??
    nodeNameOf({ identity, nodeSettings: text(NODE_SETTINGS_PATH) ?? '', flagsEnv: text(FLAGS_ENV) ?? '', hostname: os.hostname });
  const made = needed && options.token === null ? await options.newToken() : null;
  const token = options.token ?? made;
  const target = needed ? targetOf(host, options, text(KUBELET_CONF), text(CA_CERT)) : null;
  const [bootstrapConf = null] =
    token === null || target === null
      ? []
      : bootstrapFiles(options.templates, { ...target, clusterName: 'kubernetes', caPath: CA_CERT, token });
  const secret =
    made === null
      ? null
      : tokenSecret(
          {
            token: made,
            ttl: TOKEN_TTL,
            usages: ['authentication'],
            groups: DEFAULT_TOKEN_GROUPS,
            description: `For kubeletadm to renew ${nodeName ?? host}`,
          },
          context.clock.now(),
        );
  return {
    input: {
      token: { secret },
      renew: {
        bootstrapConf,
        noop:
          identity.state === 'usable'
            ? `the client certificate in ${identity.source} is valid${identity.notAfter === null ? '' : ` until ${identity.notAfter}`}`
            : '',
        backupDirectory: `${KUBEADM_TMP_DIR}/kubeletadm-renew-${context.clock.now().toISOString().slice(0, 19).replace(/[T:]/g, '-')}`,
        health: { url: await observeHealthzUrl(context), timeoutMs: options.kubeletHealthCheckMs },
        wait: { timeoutMs: options.tlsBootstrapMs, nodeName: nodeName ?? host },
      },
    },
    warnings: [],
    refusals: node?.refusals ?? [],
    node: node?.claim ?? null,
  };
}

/** Observes the host in one round trip; with the operator's credentials the host also proves its Node. */
async function inspectHost({ host, signal }: PhaseContext, { trust, nodeName }: RenewKubeletOptions) {
  if (trust === null) return { facts: await observe(host, FACTS, signal), asked: null };
  const desired = { trust, named: nodeName, acceptsExpired: true };
  const { challenge, fact } = await challengeHost(desired);
  const { facts, evidence } = await observe(host, combineFacts({ facts: FACTS, evidence: fact }), signal);
  return { facts, asked: { challenge, evidence, desired } };
}

/** The API server for the TLS bootstrap: of the administrator's kubeconfig, else of kubelet.conf. */
function targetOf(host: string, { apiServer }: RenewKubeletOptions, kubeletConf: string | null, ca: string | null): ApiServerTarget {
  const target = apiServer ?? apiServerOfKubelet(kubeletConf, ca);
  if (target !== null) return target;
  const message = `${KUBELET_CONF} names no API server or no CA`;
  throw new AppError(
    { host, code: 'NO_API_SERVER', message, hint: 'Pass the kubeconfig of an administrator with --kubeconfig' },
    { exitCode: 3 },
  );
}

/**
 * The API server and the CA in a kubelet's kubeconfig.
 * @param kubeletConf text of the kubeconfig; null: the file does not exist
 * @param ca PEM of the cluster CA on the host, for a kubeconfig that names a file
 * @returns null when the server or the CA is missing
 */
function apiServerOfKubelet(kubeletConf: string | null, ca: string | null): ApiServerTarget | null {
  try {
    const config = parseKubeconfig(kubeletConf ?? '', KUBELET_CONF);
    const cluster = config.currentContext === '' ? discoveryCluster(config) : resolveContext(config).cluster;
    const caPem = cluster.caData === undefined ? ca : Buffer.from(cluster.caData, 'base64').toString('utf8');
    if (caPem === null) return null;
    const { server, tlsServerName, proxyUrl } = cluster;
    return { server, caPem, tlsServerName, proxyUrl };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}
