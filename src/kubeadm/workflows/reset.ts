import { isAppError, type Problem, withHostInErrors } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { FactQueries } from '../../host/facts/query.ts';
import { isFleetDropIn, proxyDropIn, proxyFiles } from '../../host/install/proxy.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Workflow } from '../../host/run-workflow.ts';
import { skipsPreflight } from '../../host/run-workflow.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import { hasPermission } from '../../kube/has-permission.ts';
import { ADMIN_CONF, ETCD_DATA_DIR, FLAGS_ENV, INSTANCE_CONFIG } from '../../kube/well-known.ts';
import { criSockets, instanceSocket, podList, podProcesses } from '../../kubelet/facts/cri-socket.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import { AGENT_DIRECTORY, PROGRAM_DIRECTORY } from '../../kubelet/node-agent/agent-program.ts';
import { AGENT_UNIT, type InstalledAgent, readInstalledAgent } from '../../kubelet/node-agent/agent-units.ts';
import { applyResetDefaults } from '../config/defaults.ts';
import type { ResetConfiguration } from '../config/model.ts';
import { type EtcdOnHost, readEtcdManifest } from '../control-plane/etcd-manifest.ts';
import { manifestPath } from '../control-plane/paths.ts';
import { nodeNameOf } from '../node-identity/node-name-of.ts';
import { NODE_SETTINGS_PATH } from '../node-settings/node-settings.ts';
import { resetAgent, resetAgentFacts } from '../phases/agent-remove.ts';
import { agentRightsRemoval } from '../phases/agent-rights.ts';
import { cleanupFacts, cleanupNode, deleteNode, listLeftovers } from '../phases/cleanup-node.ts';
import { controllerOnHost, removeController } from '../phases/controller-remove.ts';
import { type RemoveEtcdMemberInput, removeEtcdMember } from '../phases/etcd-members.ts';
import { removeProxy } from '../phases/proxy.ts';
import { type Finding, isIgnored, validateFindings } from '../preflight/check.ts';
import { type ApiAccess, adminConfAccess, type ConnectControlPlane } from './control-plane/api-access.ts';
import {
  type ConnectEtcd,
  deferUntilEtcd,
  type EtcdAccess,
  etcdAccess,
  etcdClientFiles,
  etcdEndpoints,
  NO_ETCD_ACCESS,
} from './control-plane/etcd-access.ts';
import { challengeHost, type IdentifiedNode, identifyBy, type NodeTrust } from './node/identify-node.ts';

export interface ResetOptions {
  readonly reset: ResetConfiguration;
  readonly run: RunSettings;
  /** Also deletes the Node: the one named by the operator, else the one that the host proves to be. Requires a cluster. */
  readonly deleteNode?: { readonly nodeName?: string | undefined; readonly trust: NodeTrust } | undefined;
  readonly connect: ConnectControlPlane;
  readonly connectEtcd: ConnectEtcd;
  /** Receives each opened connection, so that the caller can close it. */
  readonly opened: (access: ApiAccess) => void;
}

/** Reverts the changes made to a host by init or join. */
export const resetWorkflow: Workflow<ResetOptions, Awaited<ReturnType<typeof prepareReset>>['input']> = {
  name: 'reset',
  phases: [
    removeController.select(() => ({ keepsRights: true })),
    resetAgent.select((input) => input.agent),
    deleteNode.select((input) => input.deleteNode),
    agentRightsRemoval.select((input) => input.agentRights),
    deferUntilEtcd(
      removeEtcdMember,
      (input) => input.removeMember,
      ({ peerURL }) => peerURL === null,
    ),
    cleanupNode.select((input) => input.cleanup),
    removeProxy.select(() => null),
    listLeftovers.select(({ cleanup, removesDropIn, run }) => ({
      isPlanned: run.dryRun,
      removed: [...(cleanup.etcdDataDir === null ? [] : [cleanup.etcdDataDir]), ...(removesDropIn ? [PROXY_DROP_IN] : [])],
    })),
  ],
  queries: resetQueries,
  prepare: prepareReset,
};

const ETCD_MANIFEST = manifestPath('etcd');
const PROXY_DROP_IN = proxyDropIn('kubelet');
const FACTS = combineFacts({
  os: operatingSystem,
  sockets: criSockets(null),
  identity: clientIdentity,
  podProcesses,
  files: fileFacts([INSTANCE_CONFIG, ETCD_MANIFEST, NODE_SETTINGS_PATH, FLAGS_ENV, AGENT_UNIT, PROXY_DROP_IN]),
});

/**
 * The queries of all phases for a host with the usual directories and one container runtime, for the first round trip. Only
 * other hosts need a further one.
 */
function resetQueries({ reset }: ResetOptions): FactQueries {
  const { certificatesDir, criSocket } = applyResetDefaults(reset, { criSockets: [] });
  return combineFacts({
    host: FACTS,
    agent: resetAgentFacts({ directory: AGENT_DIRECTORY, programDirectory: PROGRAM_DIRECTORY }),
    controller: controllerOnHost,
    cleanup: cleanupFacts({ certificatesDir, criSocket, etcdDataDir: ETCD_DATA_DIR }),
    etcd: fileFacts(Object.values(etcdClientFiles(certificatesDir))),
    proxy: proxyFiles,
  }).queries;
}

type ResetFacts = typeof FACTS extends Fact<infer T> ? T : never;

async function prepareReset(context: PhaseContext, options: ResetOptions) {
  const { facts, node } = await inspectHost(context, options);
  const used = instanceSocket(facts.files.get(INSTANCE_CONFIG)?.content ?? '');
  const { certificatesDir, criSocket, cleanupTmpDir, unmountFlags } = withHostInErrors(context.host.name, () =>
    applyResetDefaults(options.reset, { criSockets: used === null ? facts.sockets : [used] }),
  );
  const nodeName = node?.claim?.nodeName ?? null;
  const etcd = await etcdOfHost(context, options, facts, certificatesDir);
  const { errors, warnings } = validateFindings(
    skipsPreflight(options.run)
      ? []
      : [
          ...resetFindings(facts, options),
          ...(await containerFindings(context, facts, criSocket)),
          ...etcd.findings,
          ...(await deletionFindings(context, node)),
        ],
    [options.run],
    context.host.name,
  );
  return {
    input: {
      cleanup: {
        certificatesDir,
        criSocket,
        cleanupTmpDir: cleanupTmpDir === true,
        unmountFlags: unmountFlags ?? [],
        etcdDataDir: etcd.dataDir,
        podsMayStay: isIgnored(CONTAINERS_RUNNING, [options.run]),
      },
      run: options.run,
      removesDropIn: isFleetDropIn(facts.files.get(PROXY_DROP_IN) ?? null),
      removeMember: etcd.input,
      etcdApi: etcd.access,
      // If etcd is unreachable, the member stays in the cluster.
      mayLackEtcd: true,
      deleteNode: {
        nodeName,
        ...(options.deleteNode === undefined || nodeName !== null
          ? {}
          : { noop: node === null ? NO_NODE_LEFT : 'the Node of the host is unknown' }),
      },
      agent: {
        directory: AGENT_DIRECTORY,
        programDirectory: installedAgent(facts).programDirectory ?? PROGRAM_DIRECTORY,
        keepsDropInDirectory: installedAgent(facts).keepsDropInDirectory,
      },
      agentRights: nodeName === null ? null : { nodeName, namespace: installedAgent(facts).namespace ?? AGENT_NAMESPACE, isOptional: true },
    },
    warnings: [
      ...(options.deleteNode !== undefined && node === null ? [nothingToDelete()] : []),
      ...warnings.map(({ id, message, hint }) => ({ code: id, message: hint === undefined ? message : `${message}. ${hint}` })),
    ],
    // Refusals of the identification are no preflight errors and cannot be ignored.
    refusals: [...(node?.refusals ?? []), ...errors],
    node: node?.claim ?? null,
    // etcd loses one member at a time.
    isExclusive: (facts.files.get(ETCD_MANIFEST) ?? null) !== null,
  };
}

const NO_NODE_LEFT = 'the host has no kubelet certificate, and the cluster has no Node with the name of the host';

function nothingToDelete(): Warning {
  return { code: 'NODE_NOT_DELETED', message: `no Node is deleted: ${NO_NODE_LEFT}. If the Node has another name, add --node-name` };
}

/** Observes the host and, with --delete-node, identifies its Node. */
async function inspectHost(
  context: PhaseContext,
  { deleteNode }: ResetOptions,
): Promise<{ readonly facts: ResetFacts; readonly node: IdentifiedNode | null }> {
  const { host, signal } = context;
  if (deleteNode === undefined) return { facts: await observe(host, FACTS, signal), node: null };
  const desired = { trust: deleteNode.trust, named: deleteNode.nodeName ?? null };
  const { challenge, fact } = await challengeHost(desired);
  const { facts, evidence } = await observe(host, combineFacts({ facts: FACTS, evidence: fact }), signal);
  const node = await identifyBy(context, { challenge, evidence }, desired);
  if (node.claim !== null || evidence.certificate !== null || (await hasNodeOfItsName(context, facts))) return { facts, node };
  // The host was reset before: it cannot prove a Node, and no Node is left to delete.
  return { facts, node: null };
}

/** Whether a Node with a name of the host exists. Only decides whether the operator must give the name. */
async function hasNodeOfItsName({ cluster }: PhaseContext, { identity, files, os }: ResetFacts): Promise<boolean> {
  const text = (path: string): string => files.get(path)?.content ?? '';
  const name = nodeNameOf({ identity, nodeSettings: text(NODE_SETTINGS_PATH), flagsEnv: text(FLAGS_ENV), hostname: os.hostname });
  return name !== null && (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name })) != null;
}

function installedAgent({ files }: ResetFacts): InstalledAgent {
  return readInstalledAgent(files.get(AGENT_UNIT)?.content ?? null);
}

function resetFindings({ os }: ResetFacts, { run }: ResetOptions): readonly Finding[] {
  if (os.uid === null || os.uid === 0) return [];
  const hint = 'Run as root, or allow the user to use sudo';
  return [{ id: 'IsPrivilegedUser', severity: run.dryRun ? 'warning' : 'error', message: 'the user on the host is not root', hint }];
}

const CONTAINERS_RUNNING = 'ContainersRunning';

/**
 * Refuses pods whose containers reset cannot remove, because crictl and ctr are missing or another runtime started
 * them: the containers would write to volumes that are being deleted. kubeadm only asks the runtime and continues with a
 * warning.
 */
async function containerFindings(
  context: PhaseContext,
  { podProcesses: count }: ResetFacts,
  criSocket: string,
): Promise<readonly Finding[]> {
  if (count === 0) return [];
  const pods = await observe(context.host, podList(criSocket), context.signal);
  if (pods !== null && pods.length > 0) return [];
  const why = pods === null ? `neither crictl nor ctr can list pods at ${criSocket}` : `${criSocket} lists no pods`;
  const message = `${count} pod processes are running on the host, but ${why}`;
  const hint =
    'Start the container runtime of these pods, install crictl, and pass the socket of the runtime with --cri-socket. Or run systemctl disable kubelet, and restart the host';
  return [{ id: CONTAINERS_RUNNING, severity: 'error', message, hint }];
}

interface EtcdOfHost {
  readonly input: RemoveEtcdMemberInput;
  readonly dataDir: string | null;
  readonly access: EtcdAccess;
  readonly findings: readonly Finding[];
}

/**
 * The etcd member on the host, and whether it can be removed from its cluster: a lost member still counts for the quorum.
 * kubeadm 1.36 (reset phase remove-etcd-member) continues with a warning if it cannot. Here only TLS errors are
 * warnings, because a retry does not fix certificates.
 */
async function etcdOfHost(
  context: PhaseContext,
  options: ResetOptions,
  { files }: ResetFacts,
  certificatesDir: string,
): Promise<EtcdOfHost> {
  const manifest = files.get(ETCD_MANIFEST)?.content;
  const none = (noop: string): EtcdOfHost => ({ input: { peerURL: null, noop }, dataDir: null, access: NO_ETCD_ACCESS, findings: [] });
  if (manifest === undefined) return none('the host runs no etcd member');
  const member = readEtcdManifest(manifest);
  const etcd = await reachEtcd(context, options, member, certificatesDir);
  const { refusal } = etcd;
  const why = refusal?.message ?? null;
  const input = { peerURL: why === null ? member.peerURL : null, noop: why ?? '' };
  const found = { input, dataDir: member.dataDir, access: etcd.access };
  const findings = etcd.kubeconfig.map(kubeconfigFinding);
  if (refusal === null) return { ...found, findings };
  const message = `cannot remove this host's member from the etcd cluster: ${why}`;
  const isTls = refusal.code === 'ETCD_TLS_FAILED';
  const first = isTls ? (refusal.hint ?? 'Fix the certificates of etcd') : 'Fix etcd';
  const hint = `${first} before the reset, or remove the member on another control plane with etcdctl member remove`;
  return {
    ...found,
    findings: [...findings, { id: 'EtcdMember', severity: member.isFirst || isTls ? 'warning' : 'error', message, hint }],
  };
}

/** A refused (possibly hostile) admin.conf is an error. An incomplete one is a warning: only other etcd members are unknown. */
function kubeconfigFinding({ code, message, path, position, hint }: Problem): Finding {
  const place = position === undefined ? ADMIN_CONF : `${position.file}:${position.line}:${position.column}`;
  return {
    id: 'HostKubeconfig',
    severity: code === 'HOST_KUBECONFIG_REFUSED' ? 'error' : 'warning',
    message: `${[place, path].filter(Boolean).join(' ')}: ${message}`,
    hint,
  };
}

/** Connects to the member itself and, as a fallback, to the other members that the API server lists. */
async function reachEtcd(
  context: PhaseContext,
  { connect, connectEtcd, opened }: ResetOptions,
  { clientURL, peerURL }: EtcdOnHost,
  certificatesDir: string,
): Promise<{
  readonly access: EtcdAccess;
  /** Null: etcd answers. */
  readonly refusal: Pick<Problem, 'code' | 'message' | 'hint'> | null;
  /** Problems of admin.conf, which is then not used. */
  readonly kubeconfig: readonly Problem[];
}> {
  const facts = await observe(context.host, fileFacts([ADMIN_CONF, ...Object.values(etcdClientFiles(certificatesDir))]), context.signal);
  const textAt = (path: string): SensitiveText | null => {
    const text = facts.get(path)?.content;
    return text === undefined ? null : new SensitiveText([new Secret(text)]);
  };
  const api = adminConfAccess(connect, textAt);
  let unused: readonly Problem[] = [];
  const access = etcdAccess({
    connect: connectEtcd,
    certificatesDir,
    textAt,
    endpointsOf: async (own) => {
      const others = await api
        .reach(own)
        .then((admin) => (admin === null ? [] : etcdEndpoints(admin)))
        .catch((error: unknown) => {
          if (isAppError(error) && error.code.startsWith('HOST_KUBECONFIG_')) unused = error.problems;
          return [];
        });
      return [...new Set([...(clientURL === null ? [] : [clientURL]), ...others])];
    },
  });
  opened(api);
  try {
    const etcd = await access.reach(context);
    if (etcd === null || peerURL === null)
      return {
        access,
        refusal: { code: 'ETCD_UNREACHABLE', message: 'the etcd manifest has no peer URL, or the client certificate does not exist' },
        kubeconfig: unused,
      };
    await etcd.members();
    return { access, refusal: null, kubeconfig: unused };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { access: NO_ETCD_ACCESS, refusal: error.problems[0] ?? { code: error.code, message: error.message }, kubeconfig: unused };
  }
}

/** Refuses credentials that may not delete the Node before anything is stopped. */
async function deletionFindings({ cluster }: PhaseContext, node: IdentifiedNode | null): Promise<readonly Finding[]> {
  if (cluster === null || node?.claim == null || node.node === null) return [];
  const { nodeName } = node.claim;
  if (await hasPermission(cluster, { verb: 'delete', group: '', resource: 'nodes', name: nodeName })) return [];
  const hint = 'Pass the kubeconfig of an administrator with --kubeconfig; the kubeconfig of a node is not allowed to delete Nodes';
  return [{ id: 'NodeDeletable', severity: 'error', message: `the credentials are not allowed to delete Node ${nodeName}`, hint }];
}
