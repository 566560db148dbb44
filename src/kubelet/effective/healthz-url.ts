import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { unitState } from '../../host/facts/unit.ts';
import type { CommandLineWord } from '../../host/systemd/exec-start.ts';
import { lastFlag } from '../../host/systemd/try-drop-in.ts';
import { KUBELET_CONFIG_FILE } from '../../kube/well-known.ts';
import { textAt } from '../documents/values.ts';
import { kubeletCommandLine } from '../facts/kubelet-process.ts';
import { mergeConfig } from '../layers/layers.ts';
import { localAddress } from './configz.ts';
import { readDropIns, type SetupOptions } from './kubelet-setup.ts';
import { observeNextWords } from './observe-kubelet.ts';

/** The `/healthz` URL of a kubelet with this configuration on its host; null when healthzPort is 0. */
export function healthzUrl(config: JsonObject): string | null {
  const port = typeof config.healthzPort === 'number' ? config.healthzPort : 10248;
  if (port === 0) return null;
  return `http://${localAddress(textAt(config, 'healthzBindAddress'))}:${port}/healthz`;
}

/**
 * The healthz URL of a kubelet with this configuration file; the default if the file cannot be read. Null: disabled.
 * @param path null: no `--config`
 */
export async function healthzOf(host: Host, path: string | null, signal?: AbortSignal): Promise<string | null> {
  const text = path === null ? '' : ((await observe(host, fileFacts([path]), signal)).get(path)?.content ?? '');
  return healthzUrl(configIn(text));
}

/**
 * The healthz URL of the kubelet of a host, from the command line of its process, else of its next start, and the files that
 * it names. Null: disabled, or no configuration file is known.
 */
export async function observeHealthzUrl({ host, signal }: { readonly host: Host } & Pick<SetupOptions, 'signal'>): Promise<string | null> {
  const words = await observeKubeletWords(host, signal);
  const flag = (name: string): string => lastFlag(words, name)?.value ?? '';
  const { path, config } = await readConfigFiles(host, words, signal);
  if (path === '' || config === null) return null;
  const [port, address] = [flag('healthz-port'), flag('healthz-bind-address')];
  return healthzUrl({
    ...config,
    ...(port === '' ? {} : { healthzPort: Number(port) }),
    ...(address === '' ? {} : { healthzBindAddress: address }),
  });
}

/** The command line of the kubelet's process, else of its next start; empty: unknown. */
export async function observeKubeletWords(host: Host, signal?: AbortSignal): Promise<readonly CommandLineWord[]> {
  const { commandLine, unit } = await observe(host, combineFacts({ commandLine: kubeletCommandLine, unit: unitState('kubelet') }), signal);
  const running = commandLine?.argv.map((word) => ({ word, source: '' }));
  return running ?? (await observeNextWords(host, { unit, hostname: null, signal })) ?? [];
}

/** The file of `--config`; empty: none. Without systemd the command line is unknown: kubeadm's file is likely. */
export function configPathOf(words: readonly CommandLineWord[]): string {
  return words.length === 0 ? KUBELET_CONFIG_FILE : (lastFlag(words, 'config')?.value ?? '');
}

/**
 * The configuration files that a command line names, merged as the kubelet merges them; flags are not applied.
 * @returns `config` null: the file of `--config` cannot be read. `path` empty: no `--config`, and `config` has only drop-in files
 */
export async function readConfigFiles(
  host: Host,
  words: readonly CommandLineWord[],
  signal?: AbortSignal,
): Promise<{ readonly path: string; readonly config: JsonObject | null }> {
  const path = configPathOf(words);
  const text = path === '' ? '' : (await observe(host, fileFacts([path]), signal)).get(path)?.content;
  if (text === undefined) return { path, config: null };
  const directory = lastFlag(words, 'config-dir')?.value ?? '';
  const dropIns = directory === '' ? [] : await readDropIns(host, directory, signal);
  return { path, config: [text, ...dropIns.map((file) => file.text)].map(configIn).reduce(mergeConfig) };
}

function configIn(text: string): JsonObject {
  const { documents, problems } = parseSource(text, 'config');
  const root = documents[0]?.root ?? null;
  const value = problems.length > 0 || root === null ? null : sourceToJson(root);
  return isJsonObject(value) ? value : {};
}
