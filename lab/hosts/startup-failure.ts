import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../src/base/json.ts';
import { parseQuantity, quantityValue } from '../../src/base/text/quantity.ts';
import { parseSource, sourceToJson } from '../../src/codec/source.ts';
import { BOOTSTRAP_CONF } from '../../src/kube/well-known.ts';
import { configDropInsOf } from './kubelet-unit.ts';
import { MEMORY_BYTES } from './stand-in-admission.ts';

const MEMORY = BigInt(MEMORY_BYTES);
const DROP_IN_PLACES = ['etc/systemd/system/kubelet.service.d/10-kubeadm.conf', 'usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf'];

/**
 * Why a kubelet with this command line exits at startup, as its own error.
 * @param path of its configuration file
 * @param hasIdentity whether kubelet.conf has usable credentials
 * @returns null: it runs
 */
export function startupFailure(options: {
  readonly rootDir: string;
  readonly path: string;
  readonly command: readonly string[];
  readonly hasIdentity: boolean;
}): string | null {
  const { rootDir, path, command, hasIdentity } = options;
  const has = (file: string): boolean => existsSync(join(rootDir, file));
  if (!DROP_IN_PLACES.some((place) => has(place))) return 'failed to run Kubelet: no client provided, cannot use webhook authentication';
  const refused = whyRefused(join(rootDir, path), path);
  if (refused !== null) return refused;
  if (configDropInsOf(rootDir, command) === null)
    return 'failed to merge kubelet configs: failed to walk through kubelet dropin directory: no such file or directory';
  const config = readYaml(join(rootDir, path));
  const evictionHard = (config.evictionHard ?? {}) as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(evictionHard).find((signal) => !/^(memory|nodefs|imagefs|containerfs|pid|allocatableMemory)\./.test(signal));
  if (unknown !== undefined) return `failed to run Kubelet: failed to create kubelet: unknown eviction signal "${unknown}"`;
  const ca = ((config.authentication as { x509?: { clientCAFile?: string } } | undefined)?.x509?.clientCAFile ?? '') || null;
  const missing = [ca, config.tlsCertFile, config.tlsPrivateKeyFile].find((file) => typeof file === 'string' && file !== '' && !has(file));
  if (missing !== undefined) return `failed to run Kubelet: open ${String(missing)}: no such file or directory`;
  const reserved = ['systemReserved', 'kubeReserved'].map((field) => (config[field] as { memory?: unknown } | undefined)?.memory);
  const total = reserved.reduce((sum: bigint, text) => sum + settingsOf(text), 0n);
  if (total > MEMORY) return overReserved(total);
  if (!has(BOOTSTRAP_CONF) && !hasIdentity) {
    return 'failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory';
  }
  return null;
}

/**
 * The kubelet's error for a file that it cannot read or rejects; null for a valid file. `path` is the
 * kubelet's name of the file.
 */
export function whyRefused(file: string, path: string): string | null {
  const failed = `failed to load kubelet config file, path: ${path}, error: failed to load Kubelet config file ${path}, error`;
  if (!existsSync(file)) return `${failed} failed to read kubelet config file "${path}", error: open ${path}: no such file or directory`;
  try {
    const { maxPods } = readYaml(file);
    if (typeof maxPods !== 'number' || maxPods >= 0) return null;
    const rule = `maxPods (--max-pods) ${maxPods} must not be a negative number`;
    return `failed to validate kubelet configuration, error: invalid configuration: ${rule}, path: &TypeMeta{Kind:,APIVersion:,}`;
  } catch (error) {
    return `${failed} failed to decode: ${String(error)}`;
  }
}

/** @throws Error with the syntax error of the file */
export function readYaml(path: string): JsonObject {
  const { documents, problems } = parseSource(readFileSync(path, 'utf8'), path);
  const root = documents[0]?.root ?? null;
  if (problems[0] !== undefined || root === null) throw new Error(problems[0]?.message ?? 'the file is empty');
  return sourceToJson(root) as JsonObject;
}

function settingsOf(text: unknown): bigint {
  const quantity = typeof text === 'string' ? parseQuantity(text) : null;
  return quantity === null ? 0n : quantityValue(quantity);
}

/** @see kubernetes/kubernetes pkg/kubelet/cm/node_container_manager_linux.go validateNodeAllocatable */
function overReserved(total: bigint): string {
  return `invalid Node Allocatable configuration. Resource "memory" has a reservation of ${total} but capacity of ${MEMORY - total}. Expected capacity >= reservation.`;
}
