import type { Arg } from '../../base/arg.ts';
import { AppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { type Catalogue, type Minor, NEWEST_MINOR, OLDEST_KNOWN_MINOR, parseMinor } from '../catalogue/catalogue.ts';
import { flagsForQuery, type KubeletAcceptance, kubeletAcceptance, queriedKubelet } from '../facts/kubelet-acceptance.ts';
import { kubeletBinary } from '../facts/kubelet-version.ts';
import { observeKubelet } from './observe-kubelet.ts';

/** A kubelet binary that can validate configurations, and its environment. */
export interface KubeletToQuery {
  readonly host: Host;
  readonly path: string;
  /** e.g. `v1.36.2`. */
  readonly version: string;
  readonly minor: Minor;
  readonly flags: readonly Arg[];
  /** Effective configuration of the running kubelet; null: no kubelet is running, or `asNode` is false. */
  readonly running: JsonObject | null;
  /** Null: unknown. */
  readonly cgroupVersion: 1 | 2 | null;
}

/**
 * Finds the kubelet binary. Starts nothing except `kubelet --version`.
 * @param given the binary; undefined: the host's kubelet
 * @param asNode also read the flags and the effective configuration of the host's kubelet
 * @throws AppError KUBELET_NOT_ASKED with exit code 2 when the binary is missing or older than the known kubelets
 */
export async function findKubelet(
  host: Host,
  given: string | undefined,
  asNode: boolean,
  catalogue: Catalogue,
  signal?: AbortSignal,
): Promise<KubeletToQuery> {
  const path = given ?? (await pathOfBinary(host, signal));
  const { version, isMissing, cgroupVersion } = await observe(host, queriedKubelet(path), signal);
  const minor = version === null ? null : parseMinor(version);
  if (isMissing) throw notQueried(host, `${path} does not exist or cannot be executed`, 'Pass the path of a kubelet with --kubelet');
  if (version === null || minor === null)
    throw notQueried(host, `${path} --version prints no kubelet version`, 'Check the path of the kubelet');
  if (minor < OLDEST_KNOWN_MINOR) throw notQueried(host, `${path} is version ${version}, which is too old to be supported`);
  const node = asNode ? await observeNode(host, catalogue, signal) : { flags: [], running: null };
  return { host, path, version, minor, cgroupVersion, ...node };
}

async function pathOfBinary(host: Host, signal: AbortSignal | undefined): Promise<string> {
  const found = await observe(host, kubeletBinary, signal);
  return found !== null && 'path' in found ? found.path : 'kubelet';
}

/** A host with an unconfigured kubelet has no flags and no running configuration; its binary can still be used. */
async function observeNode(host: Host, catalogue: Catalogue, signal?: AbortSignal): Promise<Pick<KubeletToQuery, 'flags' | 'running'>> {
  try {
    const { flags, unit, running } = await observeKubelet(host, catalogue, signal);
    return { flags, running: unit?.activeState === 'active' ? running.layered.config : null };
  } catch (error) {
    if (!(error instanceof AppError) || error.code.startsWith('HOST_CONNECTION')) throw error;
    return { flags: [], running: null };
  }
}

/** Validates a configuration with a kubelet and the flags it is started with. One round trip. */
export function queryKubelet(
  { host, path, flags, minor }: KubeletToQuery,
  config: string,
  { catalogue, signal }: { readonly catalogue: Catalogue; readonly signal?: AbortSignal },
): Promise<KubeletAcceptance> {
  const words = flags.map(({ name, value }) => `--${name}=${value}`);
  const queryWith = flagsForQuery(words, { catalogue, minor: Math.min(minor, NEWEST_MINOR) });
  return observe(host, kubeletAcceptance(path, config, queryWith), signal);
}

function notQueried(host: Host, message: string, hint?: string): AppError {
  return new AppError({ host: host.name, code: 'KUBELET_NOT_ASKED', message, hint }, { exitCode: 2 });
}
