import { revealText } from '../../base/text/secret.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import { type CommandLineWord, execStartWords } from '../../host/systemd/exec-start.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { observeUnitTexts } from '../../host/systemd/observe-unit-texts.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE, KUBELET_PROGRAM } from '../../kube/well-known.ts';
import type { Catalogue } from '../../kubelet/catalogue.ts';
import { unknownFlag } from '../../kubelet/check-extra-args.ts';
import { configInputOf, placedFlags } from '../../kubelet/effective/kubelet-setup.ts';
import { explainLayers } from '../../kubelet/effective/node-explanation.ts';
import { type ObservedSetups, observeKubeletSetups } from '../../kubelet/effective/observe-kubelet.ts';
import { layerRunningConfig, type PlacedFlag } from '../../kubelet/effective/running-config.ts';
import { kubeletBinary } from '../../kubelet/facts/kubelet-version.ts';
import { designUnits, type GroupInput } from '../render/group-design.ts';
import { unitFactOf } from '../render/unit-files.ts';

/** The effect of a takeover on a flag, a file or a field. */
export interface TakeoverItem {
  /** `--node-ip=10.0.0.5`, `/etc/kubernetes/kubelet.env`, `maxPods: 50`. */
  readonly what: string;
  /** Where it is now. */
  readonly source: string;
  readonly effect: string;
}

/** What a takeover of a host by `join` would change. */
export interface Takeover {
  readonly host: string;
  readonly kubernetesVersion: string;
  /** The program that the unit starts. */
  readonly program: string;
  readonly items: readonly TakeoverItem[];
}

export interface TakeoverOptions {
  readonly catalogue: Catalogue;
  readonly templates: GroupInput['templates'];
  readonly signal?: AbortSignal | undefined;
}

const FACTS = combineFacts({ binary: kubeletBinary, os: operatingSystem, files: fileFacts([...UNIT_FILE_PATHS, KUBELET_CONFIG_FILE]) });

/**
 * Compares how the kubelet of a host is started now with the command line after `join` has written its unit files. Reads
 * only. Flags that `join` writes to kubeadm-flags.env are not known here.
 */
export async function explainTakeover(host: Host, { catalogue, templates, signal }: TakeoverOptions): Promise<Takeover> {
  const observed = await observeKubeletSetups(host, catalogue, signal);
  const { binary, os, files } = await observe(host, FACTS, signal);
  const kubeletPath = binary !== null && 'path' in binary ? binary.path : KUBELET_PROGRAM;
  const unitFiles = UNIT_FILE_PATHS.map((path) => [path, files.get(path) ?? null] as const);
  const design = designUnits({
    templates,
    kubeletPath,
    unitFiles: unitFiles.map(([path, file]) => [path, file === null ? null : unitFactOf(file)]),
    unit: observed.unit,
    packageFamily: os.packageFamily,
  });
  const planned = new Map(design.files.map(({ path, content }) => [path, revealText(content)]));
  const texts = await observeUnitTexts(host, observed.unit, { planned, signal });
  const words = texts === null ? [] : (execStartWords(texts.unitFiles, texts.environmentFiles, os.hostname) ?? []);
  const after = placedFlags(words, { catalogue, minor: observed.minor });
  const before = (observed.next ?? observed.setup).words;
  const present = new Set(observed.unitFiles.map(({ path }) => path));
  const written = [...planned.keys()].map((path) => ({ what: path, source: '', effect: present.has(path) ? 'rewritten' : 'created' }));
  const config = { what: KUBELET_CONFIG_FILE, source: '', effect: files.get(KUBELET_CONFIG_FILE) == null ? 'created' : 'rewritten' };
  return {
    host: host.name,
    kubernetesVersion: observed.version,
    program: words[0]?.word ?? kubeletPath,
    items: [
      ...(design.refusal === null ? [] : [{ what: 'unit kubelet', source: '', effect: `refused: ${design.refusal}` }]),
      ...observed.flags.map((flag) => flagItem(flag, after, observed, catalogue)),
      ...fieldItems(observed, after, catalogue),
      ...written,
      config,
      { what: FLAGS_ENV, source: '', effect: 'written with the flags of the node' },
      ...[...present]
        .filter((path) => isUsed(path, before) && !isUsed(path, words) && !planned.has(path))
        .map((path) => ({ what: path, source: '', effect: 'kept, but the new command line uses nothing of it' })),
    ],
  };
}

/** Whether a word of a command line is from a unit or environment file. */
function isUsed(path: string, words: readonly CommandLineWord[]): boolean {
  return words.some(({ source }) => source === path || source.endsWith(` in ${path}`));
}

function flagItem(flag: PlacedFlag, after: readonly PlacedFlag[], { minor }: ObservedSetups, catalogue: Catalogue): TakeoverItem {
  const { name, source } = flag;
  // HTTP headers may authenticate the kubelet.
  const value = name === 'manifest-url-header' ? '***' : flag.value;
  const item = (effect: string): TakeoverItem => ({ what: `--${name}=${value}`, source, effect });
  const unknown = unknownFlag(flag, minor, catalogue);
  if (unknown !== null) return item(`dropped: ${unknown.message}`);
  const next = after.findLast((one) => one.name === name);
  if (next === undefined) {
    if (name === 'config-dir') return item('dropped: move its files to an overlay (--overlay)');
    return item(`dropped; to keep the flag, pass --kubelet-extra-args ${name}=${value}`);
  }
  if (next.value !== flag.value) return item(`replaced by --${name}=${next.value} (${next.source})`);
  if (next.source.endsWith(` in ${FLAGS_ENV}`))
    return item(`kept by upgrade node; join rewrites the file: pass --kubelet-extra-args ${name}=${value}`);
  return item(next.source === source ? 'unchanged' : `unchanged, set by ${next.source}`);
}

/** The fields of files that the kubelet would no longer read. */
function fieldItems({ setup, minor }: ObservedSetups, after: readonly PlacedFlag[], catalogue: Catalogue): readonly TakeoverItem[] {
  const next = (name: string): string => after.findLast((flag) => flag.name === name)?.value ?? '';
  const dropIns = setup.flags.findLast(({ name }) => name === 'config-dir')?.value === next('config-dir') ? [] : setup.dropIns;
  const lost = [setup.configFile, ...dropIns].flatMap((file) => (file === null || file.path === next('config') ? [] : [file.path]));
  if (lost.length === 0 || setup.missing.length > 0) return [];
  const { layered } = layerRunningConfig(configInputOf(setup, { catalogue, minor }));
  return explainLayers(layered).flatMap(({ path, value, source }): readonly TakeoverItem[] => {
    if (!lost.some((file) => source === file || source.startsWith(`${file}:`))) return [];
    const shown = path.startsWith('staticPodURLHeader') ? '***' : inlineValue(value);
    return [{ what: `${path}: ${shown}`, source, effect: 'no longer read; to keep the field, pass it with --overlay or --set' }];
  });
}
