import { type Json, jsonEqual } from '../../../base/json.ts';
import { inlineValue } from '../../../codec/inline-value.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { operatingSystem } from '../../../host/facts/operating-system.ts';
import type { CommandLineWord } from '../../../host/systemd/exec-start.ts';
import { UNIT_FILE_PATHS } from '../../../host/systemd/kubelet-unit-paths.ts';
import type { PlannedTexts } from '../../../host/systemd/observe-unit-texts.ts';
import { FLAGS_ENV, KUBELET_CONFIG_FILE, KUBELET_PROGRAM } from '../../../kube/well-known.ts';
import type { Catalogue, Minor } from '../../../kubelet/catalogue/catalogue.ts';
import { masked } from '../../../kubelet/effective/field-changes.ts';
import { configInputOf, type KubeletSetup, placedFlags, readKubeletSetup } from '../../../kubelet/effective/kubelet-setup.ts';
import { explainLayers } from '../../../kubelet/effective/node-explanation.ts';
import { observeKubeletSetups } from '../../../kubelet/effective/observe-kubelet.ts';
import { layerRunningConfig, type PlacedFlag } from '../../../kubelet/effective/running-config.ts';
import { kubeletBinary } from '../../../kubelet/facts/kubelet-version.ts';
import { type LayeredConfig, leavesOf } from '../../../kubelet/layers/layers.ts';
import { NODE_SETTINGS_PATH, readKeptFlags } from '../../node-settings/node-settings.ts';
import { foreignFlags, observeKubeadmUnit, SOCKET_FLAG, startsKubelet, whyNotKept } from './host-flags.ts';
import type { NodeOptions } from './node-options.ts';

/** The effect of a takeover on a flag, a file or a field. */
interface TakeoverItem {
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
  readonly program: string;
  readonly items: readonly TakeoverItem[];
}

const FACTS = combineFacts({
  kubelet: kubeletBinary,
  os: operatingSystem,
  unitFiles: fileFacts(UNIT_FILE_PATHS),
  files: fileFacts([KUBELET_CONFIG_FILE, NODE_SETTINGS_PATH]),
});

/**
 * Compares how the kubelet of a host is started now with the command line after `join` has written its unit files. Reads
 * only. The configuration that `join` reads from the cluster is not known here: fields are compared with the present
 * /var/lib/kubelet/config.yaml, else with the defaults of the kubelet.
 */
export async function explainTakeover(
  host: Host,
  {
    catalogue,
    templates,
    signal,
  }: {
    readonly catalogue: Catalogue;
    readonly templates: NodeOptions['templates'];
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Takeover> {
  const observed = await observeKubeletSetups(host, catalogue, signal);
  const { files, ...facts } = await observe(host, FACTS, signal);
  const { unit, words } = await observeKubeadmUnit({ host, signal }, { ...facts, unit: observed.unit, templates });
  const reading = { catalogue, minor: observed.minor };
  const before = startsKubelet(observed.next?.words) && observed.next !== null ? observed.next : observed.setup;
  const after = placedFlags(words, reading);
  const saved = readKeptFlags(files.get(NODE_SETTINGS_PATH)?.content ?? '');
  const isSaved = ({ name, file }: PlacedFlag): boolean => file === FLAGS_ENV && saved.some((flag) => flag.name === name);
  const foreign = [...foreignFlags(before.flags, after), ...before.flags.filter(isSaved)];
  const reasons = new Map(foreign.map((flag) => [flag, whyNotKept(flag, unit, reading)]));
  const kept = foreign.filter((flag) => reasons.get(flag) === null);
  const planned = new Set(unit.files.map(({ path }) => path));
  const present = new Set(observed.unitFiles.map(({ path }) => path));
  const written = [...planned].map((path) => ({ what: path, source: '', effect: present.has(path) ? 'rewritten' : 'created' }));
  const hasConfig = files.get(KUBELET_CONFIG_FILE)?.content !== undefined;
  const texts: PlannedTexts = hasConfig ? new Map() : new Map([[KUBELET_CONFIG_FILE, NO_FIELDS]]);
  const next = await readKubeletSetup(host, words, { ...reading, planned: texts, signal });
  return {
    host: host.name,
    kubernetesVersion: observed.version,
    program: words[0]?.word ?? KUBELET_PROGRAM,
    items: [
      ...(unit.refusal === null ? [] : [{ what: 'unit kubelet', source: '', effect: `refused: ${unit.refusal}` }]),
      ...before.flags.map((flag) => flagItem(flag, after, reasons.get(flag))),
      ...fieldItems(before, { ...next, flags: [...next.flags, ...kept] }, { ...reading, hasConfig }),
      ...written,
      { what: KUBELET_CONFIG_FILE, source: '', effect: hasConfig ? 'rewritten' : 'created' },
      { what: FLAGS_ENV, source: '', effect: 'written with the flags of the node' },
      ...[...present]
        .filter((path) => isUsed(path, before.words) && !isUsed(path, words) && !planned.has(path))
        .map((path) => ({ what: path, source: '', effect: 'kept, but the new command line uses nothing of it' })),
    ],
  };
}

const NO_FIELDS = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** Whether a word of a command line is from a unit or environment file. */
function isUsed(path: string, words: readonly CommandLineWord[]): boolean {
  return words.some(({ file }) => file === path);
}

/** @param reason of a flag of the host's own unit: why it is not kept, or null; undefined for other flags */
function flagItem(flag: PlacedFlag, after: readonly PlacedFlag[], reason: string | null | undefined): TakeoverItem {
  const { name, source } = flag;
  const shown = `${name}=${String(masked(name, flag.value))}`;
  const item = (effect: string): TakeoverItem => ({ what: `--${shown}`, source, effect });
  if (reason === null && name === SOCKET_FLAG) return item('kept as node setting, unless --cri-socket names another socket');
  if (reason === null) return item(`kept as node setting, unless dropped by --kubelet-extra-args ${name}-`);
  if (reason !== undefined) return item(`dropped: ${reason}`);
  const next = after.findLast((one) => one.name === name);
  if (next !== undefined && next.value !== flag.value)
    return item(`replaced by --${name}=${String(masked(name, next.value))} (${next.source})`);
  if (next !== undefined) return item(next.source === source ? 'unchanged' : `unchanged, set by ${next.source}`);
  if (flag.file !== FLAGS_ENV) return item('dropped');
  return item(`kept by upgrade node; join rewrites the file: pass --kubelet-extra-args ${shown}`);
}

/** The fields of files that the kubelet would no longer read, and whose value would change. */
function fieldItems(
  before: KubeletSetup,
  after: KubeletSetup,
  reading: {
    readonly catalogue: Catalogue;
    readonly minor: Minor;
    /** The host has the configuration file that `join` rewrites. */
    readonly hasConfig: boolean;
  },
): readonly TakeoverItem[] {
  const read = new Set(after.files.map(({ path }) => path));
  const lost = before.files.filter(({ path }) => !read.has(path)).map(({ path }) => path);
  if (lost.length === 0 || before.missing.length > 0 || after.missing.length > 0) return [];
  const [old, now] = [before, after].map((setup) => layerRunningConfig(configInputOf(setup, reading)).layered) as [
    LayeredConfig,
    LayeredConfig,
  ];
  const values = leavesOf(now.config);
  return explainLayers(old).flatMap(({ path, value, source }): readonly TakeoverItem[] => {
    const next = values.get(path);
    if (!lost.some((file) => source === file || source.startsWith(`${file}:`)) || jsonEqual(next, value)) return [];
    const shown = (one: Json | undefined): string => inlineValue(masked(path, one));
    const place = reading.hasConfig && next !== undefined ? `; ${KUBELET_CONFIG_FILE} has ${shown(next)}` : '';
    return [
      { what: `${path}: ${shown(value)}`, source, effect: `no longer read${place}. To keep the field, pass it with --overlay or --set` },
    ];
  });
}
