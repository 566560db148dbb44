import { applyResetDefaults } from '../core/config/defaults.ts';
import type { ResetConfiguration } from '../core/config/model.ts';
import { entryOf, parseSource } from '../core/config/source.ts';
import { aboutHost } from '../core/errors.ts';
import { criSockets } from '../core/facts/cri-socket.ts';
import { combineFacts, type Fact } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import { clientIdentity } from '../core/facts/kubelet-identity.ts';
import { operatingSystem } from '../core/facts/operating-system.ts';
import { NODE_MEMORY_PATH } from '../core/node-memory/node-memory.ts';
import { type Finding, judgeFindings } from '../core/preflight/check.ts';
import { mayDo } from '../engine/may-do.ts';
import { observe } from '../engine/observe.ts';
import type { PhaseContext } from '../engine/phase.ts';
import type { Prepared, Workflow } from '../engine/run-workflow.ts';
import { type CleanupNodeInput, cleanupNode } from '../phases/cleanup-node.ts';
import { type DeleteNodeInput, deleteNode } from '../phases/delete-node.ts';
import { listLeftovers } from '../phases/list-leftovers.ts';
import { nodeNameOf } from './node-name-of.ts';
import { selectPhase } from './select-phase.ts';

export interface ResetOptions {
  readonly reset: ResetConfiguration;
  readonly ignorePreflightErrors: readonly string[];
  readonly skipPreflight: boolean;
  readonly dryRun: boolean;
  /** Deletes the Node too: of this name, or of the one the host knows. Needs a cluster. */
  readonly deleteNode?: { readonly nodeName?: string };
}

export interface ResetInput {
  readonly cleanup: CleanupNodeInput;
  readonly deleteNode: DeleteNodeInput;
}

/** Takes off a host what init or join put there. */
export const resetWorkflow: Workflow<ResetOptions, ResetInput> = {
  name: 'reset',
  phases: [
    selectPhase(deleteNode, (input) => input.deleteNode),
    selectPhase(cleanupNode, (input) => input.cleanup),
    selectPhase(listLeftovers, () => null),
  ],
  prepare: prepareReset,
};

const INSTANCE_CONFIG = '/var/lib/kubelet/instance-config.yaml';
const ETCD_MANIFEST = '/etc/kubernetes/manifests/etcd.yaml';
const FLAGS_ENV = '/var/lib/kubelet/kubeadm-flags.env';
const MACHINE_ID = '/etc/machine-id';
const FACTS = combineFacts({
  os: operatingSystem,
  sockets: criSockets(null),
  identity: clientIdentity,
  files: fileFacts([INSTANCE_CONFIG, ETCD_MANIFEST, NODE_MEMORY_PATH, FLAGS_ENV, MACHINE_ID]),
});

type ResetFacts = typeof FACTS extends Fact<infer T> ? T : never;

async function prepareReset(context: PhaseContext, options: ResetOptions): Promise<Prepared<ResetInput>> {
  const facts = await observe(context.host, FACTS, context.signal);
  const used = endpointOf(facts.files.get(INSTANCE_CONFIG)?.content ?? '');
  const { certificatesDir, criSocket, cleanupTmpDir, unmountFlags, ignorePreflightErrors } = aboutHost(context.host.name, () =>
    applyResetDefaults(options.reset, { criSockets: used === null ? facts.sockets : [used] }),
  );
  const nodeName = options.deleteNode === undefined ? null : (options.deleteNode.nodeName ?? ownNodeName(facts));
  const { errors, warnings } = judgeFindings(
    options.skipPreflight ? [] : [...resetFindings(facts, options), ...(await deletionFindings(context, facts, nodeName))],
    [...options.ignorePreflightErrors, ...(ignorePreflightErrors ?? [])],
    context.host.name,
  );
  return {
    input: {
      cleanup: { certificatesDir, criSocket, cleanupTmpDir: cleanupTmpDir === true, unmountFlags: unmountFlags ?? [] },
      deleteNode: { nodeName },
    },
    warnings: warnings.map(({ id, message }) => ({ code: id, message })),
    refusals: errors,
  };
}

function resetFindings({ os, files }: ResetFacts, { dryRun }: ResetOptions): readonly Finding[] {
  const findings: Finding[] = [];
  if (os.uid !== null && os.uid !== 0) {
    const mend = 'Run as root, or let the user use sudo';
    findings.push({ id: 'IsPrivilegedUser', severity: dryRun ? 'warning' : 'error', message: 'the user on the host is not root', mend });
  }
  // kubeadm's phase remove-etcd-member: a member that is gone for good still counts for the quorum.
  if ((files.get(ETCD_MANIFEST) ?? null) !== null) {
    const message = 'the host runs a member of etcd, and this program does not take it out of the etcd cluster';
    const mend = 'Use kubeadm reset there, or remove the member first (etcdctl member remove)';
    findings.push({ id: 'EtcdMember', severity: 'error', message, mend });
  }
  return findings;
}

function ownNodeName({ identity, files, os }: ResetFacts): string | null {
  const text = (path: string): string => files.get(path)?.content ?? '';
  return nodeNameOf({ identity, memory: text(NODE_MEMORY_PATH), flagsEnv: text(FLAGS_ENV), hostname: os.hostname });
}

/** What speaks against deleting the Node: it is another host's, or the credentials do not reach that far. Asked before anything is stopped. */
async function deletionFindings({ cluster }: PhaseContext, { files }: ResetFacts, nodeName: string | null): Promise<readonly Finding[]> {
  if (nodeName === null || cluster === null) return [];
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
  if (node === null) return [];
  const own = files.get(MACHINE_ID)?.content?.trim() ?? '';
  const { nodeInfo = {} } = (node.status ?? {}) as { readonly nodeInfo?: { readonly machineID?: string } };
  const theirs = nodeInfo.machineID ?? '';
  if (own !== '' && theirs !== '' && own !== theirs) {
    const message = `Node ${nodeName} is of another host: its machine-id is ${theirs}, this host's is ${own}`;
    const mend = 'Name the Node of this host with --node-name, or reset without --delete-node';
    return [{ id: 'NodeOfAnotherHost', severity: 'error', message, mend }];
  }
  if (await mayDo(cluster, { verb: 'delete', group: '', resource: 'nodes', name: nodeName })) return [];
  const mend = 'Give the credentials of an administrator with --kubeconfig; those of a node never reach that far';
  return [{ id: 'NodeDeletable', severity: 'error', message: `the credentials may not delete Node ${nodeName}`, mend }];
}

/** The runtime the kubelet was set up with. */
function endpointOf(instanceConfig: string): string | null {
  const root = parseSource(instanceConfig, INSTANCE_CONFIG).documents[0]?.root ?? null;
  const value = entryOf(root, 'containerRuntimeEndpoint')?.value;
  return value?.kind === 'scalar' && typeof value.scalar.value === 'string' && value.scalar.value !== '' ? value.scalar.value : null;
}
