import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import type { KubeObject } from '../../kube/object.ts';
import { PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import { type ObservedKubelet, observeKubelet } from '../../kubeadm/workflows/observe-kubelet.ts';
import { queryKubelet } from '../../kubeadm/workflows/query-kubelet.ts';
import { type Catalogue, type LiveChange, parseMinor } from '../../kubelet/catalogue.ts';
import type { ConfigSource } from '../../kubelet/config-source.ts';
import type { HostText, ReadHostText } from '../../kubelet/effective/running-config.ts';
import { cgroupDriverIssue, runtimeCgroupDriver } from '../../kubelet/facts/cgroup-driver.ts';
import type { NodeTerms } from './node-assignment.ts';
import { expectedConfigz, type PreparedPayload, preparePayload } from './prepare-payload.ts';

export interface PrepareOptions {
  readonly host: Host;
  readonly nodeName: string;
  readonly catalogue: Catalogue;
  /** The configuration of the kubelet while nothing is assigned. */
  readonly localConfig: string;
  readonly allow: LiveChange;
  /** Directory of the checkpoints. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** The assigned version of a ConfigMap. */
export interface AssignedObject {
  readonly source: ConfigSource;
  readonly object: KubeObject;
  readonly terms: NodeTerms;
}

/**
 * Prepares the payload of an assignment and validates it for the current state of the node, also with the
 * kubelet binary. Nothing is changed.
 * @param proven hashes of payloads that already ran on this node: the kubelet does not validate them again
 * @throws the errors of observing the kubelet
 */
export async function prepareAssigned(
  { source, object, terms }: AssignedObject,
  proven: readonly string[],
  { host, nodeName, catalogue, localConfig, allow, directory, signal }: PrepareOptions,
): Promise<PreparedPayload> {
  const kubelet = await observeKubelet(host, catalogue, signal);
  const { version, minor, flags } = kubelet;
  const { uid = '', resourceVersion = '' } = object.metadata;
  const { local } = await host.query({ local: { kind: 'file', path: localConfig } }, { signal });
  const prepared = preparePayload(
    {
      identity: { ...source, uid, resourceVersion },
      data: isJsonObject(object.data) ? (object.data as Readonly<Record<string, string>>) : {},
    },
    {
      name: nodeName,
      group: terms.group,
      directory,
      minor,
      kubeletMinor: parseMinor(version) ?? minor,
      catalogue,
      local: { path: localConfig, text: local?.content ?? '' },
      flags,
      dropIns: dropInsOf(kubelet),
      running: kubelet.kubelet === null ? null : kubelet.running.layered.config,
      cgroupVersion: null,
    },
    { allow, isCordoned: terms.isCordoned },
  );
  const { hash } = prepared.candidate;
  if (prepared.files === null || (hash !== null && proven.includes(hash))) return prepared;
  const refuse = (cause: string): PreparedPayload => ({ ...prepared, files: null, refusal: { code: 'VALIDATION_FAILED', cause } });
  const wrongDriver = await driverIssue(host, prepared.config ?? {}, kubelet, signal);
  if (wrongDriver !== null) return refuse(wrongDriver);
  const asked = { host, path: 'kubelet', version, minor, flags, running: null, cgroupVersion: null };
  const word = await queryKubelet(asked, prepared.files[PAYLOAD_FILE] ?? '', { catalogue, signal });
  return word.verdict !== 'refused' || word.isHost ? prepared : refuse(`the kubelet refuses the configuration: ${word.cause}`);
}

/**
 * A kubelet with a cgroup driver other than its runtime's starts and becomes Ready, but cannot start pods.
 */
async function driverIssue(
  host: Host,
  desired: JsonObject,
  { running, flags }: ObservedKubelet,
  signal: AbortSignal,
): Promise<string | null> {
  if (desired.cgroupDriver === running.layered.config.cgroupDriver) return null;
  const socket = desired.containerRuntimeEndpoint ?? flags.findLast(({ name }) => name === 'container-runtime-endpoint')?.value;
  if (typeof socket !== 'string' || socket === '') return null;
  return cgroupDriverIssue(desired.cgroupDriver, await observe(host, runtimeCgroupDriver(socket), signal));
}

/** The configz fields that a kubelet with the payload must show. */
export function expectedOf(payload: ReadHostText, kubelet: ObservedKubelet, catalogue: Catalogue): JsonObject {
  const { minor, flags } = kubelet;
  return expectedConfigz(payload, { minor, catalogue, flags, dropIns: dropInsOf(kubelet) });
}

function dropInsOf({ files }: ObservedKubelet): readonly HostText[] {
  return files.flatMap(({ path, file }) => (path.endsWith('.conf') && file?.content !== undefined ? [{ path, text: file.content }] : []));
}
