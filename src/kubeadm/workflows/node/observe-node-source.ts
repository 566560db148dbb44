import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { unitState } from '../../../host/facts/unit.ts';
import { lastFlag } from '../../../host/systemd/try-drop-in.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import { type Minor, parseMinor } from '../../../kubelet/catalogue/catalogue.ts';
import { assignedFile, checkpointFile, lastKnownGoodFile, parseAssigned } from '../../../kubelet/effective/dynamic-store.ts';
import { readDropIns } from '../../../kubelet/effective/kubelet-setup.ts';
import { type HostSource, resolveCandidate } from '../../../kubelet/effective/node-source.ts';
import type { HostText } from '../../../kubelet/effective/running-config.ts';
import { kubeletCommandLine } from '../../../kubelet/facts/kubelet-process.ts';
import { kubeletBinary } from '../../../kubelet/facts/kubelet-version.ts';
import type { ConfigIdentity } from '../../../kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../../kubelet/node-agent/agent-program.ts';
import { POINTER_DROP_IN } from '../../../kubelet/node-agent/agent-units.ts';
import {
  checkpointDirectory,
  hashInPath,
  MANIFEST_FILE,
  PAYLOAD_FILE,
  parseManifest,
  pointerFile,
} from '../../../kubelet/node-agent/layout.ts';
import { FIRST_GATED_MINOR, gateOf } from '../../../kubelet/node-agent/native-flags.ts';

const POINTER = pointerFile(AGENT_DIRECTORY);

/** The facts that `observeNodeSource` queries first, for the first round trip of a run. */
export const NODE_SOURCE_FACTS = combineFacts({
  commandLine: kubeletCommandLine,
  unit: unitState('kubelet'),
  binary: kubeletBinary,
  files: fileFacts([POINTER, POINTER_DROP_IN]),
});

/** The configuration of a kubelet as its host shows it. */
interface ObservedSource {
  readonly host: HostSource;
  /** Drop-in files of `--config-dir`, in merge order. */
  readonly dropIns: readonly HostText[];
  /**
   * Reads the text that replaces config.yaml.
   * @param node the Node, which shows whether a kubelet up to 1.23 uses its last known good configuration; null: unknown
   * @returns null: config.yaml itself is in force, or the text cannot be read
   */
  payload(node: KubeObject | null): Promise<SourcePayload | null>;
}

/** The text of a ConfigMap that a kubelet runs. */
export interface SourcePayload extends HostText {
  /** The agent's checkpoint is the configuration file; the native one is merged as a dynamic configuration. */
  readonly by: 'agent' | 'kubelet';
  /** The leaves that the ConfigMap sets; null: it is complete. Undefined: unknown. */
  readonly sets: readonly string[] | null | undefined;
  /** Key and line of each field in the ConfigMap. Undefined: unknown. */
  readonly places?: Readonly<Record<string, string>> | undefined;
}

/**
 * Observes where the kubelet of a host has its configuration from: by its command line, or, if it does not run, by
 * the pointer that the agent wrote for its next start. Needs no API server. One round trip; more only for a node
 * with a ConfigMap or drop-ins.
 */
export async function observeNodeSource(host: Host, signal?: AbortSignal): Promise<ObservedSource> {
  const { commandLine, unit, binary, files } = await observe(host, NODE_SOURCE_FACTS, signal);
  const next = files.get(POINTER_DROP_IN) == null ? '' : (files.get(POINTER)?.content ?? '');
  if (commandLine === null && unit?.activeState === 'active')
    return withoutPayload({ kind: 'unknown', why: 'the command line of the kubelet cannot be read' });
  const words = (commandLine?.argv ?? []).slice(1).map((word) => ({ word, source: '' }));
  const flag = (name: string): string => lastFlag(words, name)?.value ?? '';
  const hash = hashInPath(commandLine === null ? next : flag('config'));
  if (commandLine === null && hash === null) return withoutPayload({ kind: 'none' });
  const dropIns = flag('config-dir') === '' ? [] : await readDropIns(host, flag('config-dir'), signal);
  if (hash !== null) return observeAgent(host, hash, dropIns, signal);
  const directory = flag('dynamic-config-dir');
  const minor = binary !== null && 'version' in binary ? parseMinor(binary.version) : null;
  const path = flag('config');
  const other = path === '' || path === KUBELET_CONFIG_FILE ? {} : { path };
  if (directory === '' || !isGateOpen(words, minor))
    return { ...withoutPayload({ kind: 'file', dropIns: dropIns.length, ...other }), dropIns };
  return observeNative(host, directory, dropIns, signal);
}

function isGateOpen(words: Parameters<typeof gateOf>[0], minor: Minor | null): boolean {
  return gateOf(words) ?? (minor === null || minor < FIRST_GATED_MINOR);
}

async function observeAgent(host: Host, hash: string, dropIns: readonly HostText[], signal?: AbortSignal): Promise<ObservedSource> {
  const directory = checkpointDirectory(AGENT_DIRECTORY, hash);
  const path = `${directory}/${PAYLOAD_FILE}`;
  const found = await observe(host, fileFacts([path, `${directory}/${MANIFEST_FILE}`]), signal);
  const manifest = parseManifest(found.get(`${directory}/${MANIFEST_FILE}`)?.content ?? '');
  const text = found.get(path)?.content;
  const sets = manifest === null ? undefined : manifest.sets;
  return {
    host:
      manifest === null
        ? { kind: 'unknown', why: `${directory}/${MANIFEST_FILE}, which names the ConfigMap of the kubelet, cannot be read` }
        : { kind: 'config-map', source: sourceOf(manifest.identity), dropIns: dropIns.length },
    dropIns,
    payload: async () => (text === undefined ? null : { path, text, by: 'agent', sets, places: manifest?.places }),
  };
}

async function observeNative(host: Host, directory: string, dropIns: readonly HostText[], signal?: AbortSignal): Promise<ObservedSource> {
  const paths = [assignedFile(directory), lastKnownGoodFile(directory)];
  const found = await observe(host, fileFacts(paths), signal);
  const [assigned, lastKnownGood] = paths.map((path) => parseAssigned(found.get(path)?.content ?? ''));
  // Without an assignment the last known good configuration is not used.
  if (assigned == null) return { ...withoutPayload({ kind: 'file', dropIns: dropIns.length }), dropIns };
  const candidates = [assigned, ...(lastKnownGood == null ? [] : [lastKnownGood])].map((one): ConfigIdentity => {
    const [namespace = '', name = ''] = one.configMap.split('/');
    return { namespace, name, kubeletConfigKey: one.key, uid: one.uid, resourceVersion: one.resourceVersion };
  });
  return {
    host: { kind: 'native', candidates, dropIns: dropIns.length },
    dropIns,
    payload: async (node) => {
      const active = resolveCandidate(candidates, node);
      if (active === null) return null;
      const path = checkpointFile(directory, { ...active, key: active.kubeletConfigKey, configMap: '' });
      const text = (await observe(host, fileFacts([path]), signal)).get(path)?.content;
      return text === undefined ? null : { path, text, by: 'kubelet', sets: null };
    },
  };
}

function withoutPayload(host: HostSource): ObservedSource {
  return { host, dropIns: [], payload: async () => null };
}

function sourceOf({ namespace, name, kubeletConfigKey }: ConfigIdentity) {
  return { namespace, name, kubeletConfigKey };
}
