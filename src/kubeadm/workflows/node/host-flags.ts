import { AppError, type Problem } from '../../../base/errors.ts';
import { revealText } from '../../../base/text/secret.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Warning } from '../../../host/plan/change.ts';
import type { CommandLineWord } from '../../../host/systemd/exec-start.ts';
import type { PlannedTexts } from '../../../host/systemd/observe-unit-texts.ts';
import { FLAGS_ENV, KUBELET_PROGRAM } from '../../../kube/well-known.ts';
import { type Minor, NEWEST_MINOR } from '../../../kubelet/catalogue/catalogue.ts';
import { isConfidentialFlag } from '../../../kubelet/effective/field-changes.ts';
import { placedFlags, type SetupOptions } from '../../../kubelet/effective/kubelet-setup.ts';
import { observeNextWords, wordsOfProcess } from '../../../kubelet/effective/observe-kubelet.ts';
import type { PlacedFlag } from '../../../kubelet/effective/running-config.ts';
import type { HostFacts } from '../../../kubelet/facts/host-facts.ts';
import { kubeletCommandLine } from '../../../kubelet/facts/kubelet-process.ts';
import { nodeNameOf, unknownFlag } from '../../../kubelet/flags/check-extra-args.ts';
import { quoteFlagValue } from '../../../kubelet/flags/flags-env.ts';
import { POINTER_DROP_IN } from '../../../kubelet/node-agent/agent-units.ts';
import type { NodeRegistration } from '../../config/model.ts';
import { NODE_SETTINGS_PATH, readKeptFlags } from '../../node-settings/node-settings.ts';
import { designUnits } from '../../render/group-design.ts';
import { type UnitFilesDesign, unitFactOf } from '../../render/unit-files.ts';
import type { NodeOptions } from './node-options.ts';

/** The flags of a unit of the administrator, which kubeadm's unit replaces. */
export interface HostFlags {
  /** Kept for the node under its declared flags, in the order of the command line. */
  readonly kept: readonly PlacedFlag[];
  /** The unit still sets flags that are kept: this run replaces its command line. */
  readonly isTakeover: boolean;
  readonly warnings: readonly Warning[];
  readonly refusals: readonly Problem[];
}

/** Of a host whose unit stays, or without a kubelet. */
export const NO_HOST_FLAGS: HostFlags = { kept: [], isTakeover: false, warnings: [], refusals: [] };

type FlagReading = Pick<SetupOptions, 'catalogue' | 'minor'>;

/**
 * Finds the flags that a run keeps for a node: those of the host's own unit (one that is not kubeadm's, and that the run
 * replaces), unless kubeadm's unit sets them, and those of earlier runs. Declared flags, `--node-name`, taints and the CRI socket win. Reads only.
 * @returns no flags for a host without a kubelet, or laid out by kubeadm
 * @throws AppError KUBELET_FLAG_UNKNOWN, exit code 2, for a dropped flag that no kubelet has
 */
export async function observeHostFlags(
  { host, signal }: Pick<PhaseContext, 'host' | 'signal'>,
  { templates, catalogue, nodeRegistration, staged }: NodeOptions,
  { facts, kubeletMinor }: { readonly facts: HostFacts; readonly kubeletMinor: Minor | null },
): Promise<HostFlags> {
  const { droppedFlags = [] } = nodeRegistration;
  const unknown = droppedFlags.filter((name) => !catalogue.flags.has(name));
  if (unknown.length > 0) throw new AppError(unknown.map(noSuchFlag), { exitCode: 2 });
  if (kubeletMinor === null || staged) return NO_HOST_FLAGS;
  const reading = { catalogue, minor: Math.min(kubeletMinor, NEWEST_MINOR) };
  const settings = (await observe(host, fileFacts([NODE_SETTINGS_PATH]), signal)).get(NODE_SETTINGS_PATH)?.content;
  const saved = settings === undefined ? [] : readKeptFlags(settings);
  const before = await observeOwnFlags({ host, signal }, facts, reading);
  if (foreignFlags(before, []).length === 0 && saved.length === 0 && droppedFlags.length === 0) return NO_HOST_FLAGS;
  const { unit, words } = await observeKubeadmUnit({ host, signal }, { ...facts, templates });
  const after = placedFlags(words, reading);
  const found = foreignFlags(before, after);
  const isOverridden = overriddenBy(nodeRegistration);
  const candidates = [...found, ...saved.filter(({ name }) => !found.some((flag) => flag.name === name) && !isIn(after, name))];
  const desired = candidates.filter((flag) => !isOverridden(flag));
  const reasons = desired.map((flag) => ({ flag, reason: whyNotKept(flag, unit, reading) }));
  return {
    kept: reasons.flatMap(({ flag, reason }) => (reason === null ? [flag] : [])),
    isTakeover: found.length > 0,
    warnings: reasons.flatMap(({ flag: { name, source }, reason }) =>
      reason === null ? [] : [{ code: 'KUBELET_FLAG_DROPPED', message: `--${name} of ${source} is not kept: ${reason}` }],
    ),
    refusals: droppedFlags.flatMap((name) => {
      const flag = after.findLast((one) => one.name === name);
      return flag === undefined ? [] : [notDropped(host, flag)];
    }),
  };
}

/** The registration with the kept flags below its own. */
export function withHostFlags(node: NodeRegistration, { kept }: Pick<HostFlags, 'kept'>): NodeRegistration {
  const socket = node.criSocket ?? keptSocket(kept)?.value;
  const args = kept.filter(({ name }) => name !== SOCKET_FLAG).map(({ name, value }) => ({ name, value: quoteFlagValue(value) }));
  return {
    ...node,
    ...(socket === undefined ? {} : { criSocket: socket }),
    kubeletExtraArgs: [...args, ...(node.kubeletExtraArgs ?? [])],
  };
}

/** The CRI socket of the host's own unit. */
export function keptSocket(kept: HostFlags['kept']): PlacedFlag | null {
  return kept.findLast(({ name }) => name === SOCKET_FLAG) ?? null;
}

/** Kept as `criSocket`, which becomes a field of kubelets that have one. */
export const SOCKET_FLAG = 'container-runtime-endpoint';

const KUBEADM_FLAGS: ReadonlySet<string> = new Set(['config', 'kubeconfig', 'bootstrap-kubeconfig']);

/**
 * The flags of a command line that kubeadm's unit replaces, without those of kubeadm-flags.env.
 * @param after flags of the command line with kubeadm's unit
 */
export function foreignFlags(before: readonly PlacedFlag[], after: readonly PlacedFlag[]): readonly PlacedFlag[] {
  return before.filter(
    ({ name, value, file }) =>
      !KUBEADM_FLAGS.has(name) && file !== FLAGS_ENV && !after.some((flag) => flag.name === name && flag.value === value),
  );
}

/** Why a flag of the host's own unit cannot become a flag of kubeadm-flags.env; null: it can. */
export function whyNotKept(flag: PlacedFlag, { extraArgsFile }: UnitFilesDesign, { catalogue, minor }: FlagReading): string | null {
  const unknown = unknownFlag(flag, minor, catalogue);
  if (unknown !== null) return `${unknown.message}${unknown.hint === undefined ? '' : `. ${unknown.hint}`}`;
  if (!isConfidentialFlag(flag)) return null;
  return `its value can be secret, and all users can read ${FLAGS_ENV}. To keep the flag, move it to KUBELET_EXTRA_ARGS in ${extraArgsFile}`;
}

/**
 * The command line with kubeadm's unit files and without kubeadm-flags.env.
 * @returns with the unit files that a run would write
 */
export async function observeKubeadmUnit(
  { host, signal }: { readonly host: Host; readonly signal?: AbortSignal | undefined },
  { kubelet, unitFiles, unit, os, templates }: Pick<HostFacts, 'kubelet' | 'unitFiles' | 'unit' | 'os'> & Pick<NodeOptions, 'templates'>,
): Promise<{ readonly unit: UnitFilesDesign; readonly words: readonly CommandLineWord[] }> {
  const design = designUnits({
    templates,
    kubeletPath: kubelet !== null && 'path' in kubelet ? kubelet.path : KUBELET_PROGRAM,
    unitFiles: [...unitFiles].map(([path, file]) => [path, file === null ? null : unitFactOf(file)]),
    unit,
    packageFamily: os.packageFamily,
  });
  const written = design.files.map(({ path, content }) => [path, revealText(content)] as const);
  const planned: PlannedTexts = new Map([[POINTER_DROP_IN, null], [FLAGS_ENV, null], ...written]);
  return { unit: design, words: (await observeNextWords(host, { unit, hostname: os.hostname, planned, signal })) ?? [] };
}

/**
 * The flags with which the unit starts the kubelet; of the running kubelet if the unit starts it with another program, such
 * as a script.
 */
async function observeOwnFlags(
  { host, signal }: { readonly host: Host; readonly signal?: AbortSignal | undefined },
  { unit, os }: Pick<HostFacts, 'unit' | 'os'>,
  reading: FlagReading,
): Promise<readonly PlacedFlag[]> {
  const planned: PlannedTexts = new Map([[POINTER_DROP_IN, null]]);
  const next = await observeNextWords(host, { unit, hostname: os.hostname, planned, signal });
  if (next !== null && startsKubelet(next)) return placedFlags(next, reading);
  const running = await observe(host, kubeletCommandLine, signal);
  return running === null ? [] : placedFlags(wordsOfProcess(running.argv, next, reading), reading);
}

/** Whether a command line starts the kubelet itself, not a script. */
export function startsKubelet(words: readonly CommandLineWord[] | undefined): boolean {
  return /(?:^|\/)kubelet$/.test(words?.[0]?.word ?? '');
}

/** Whether a declared setting replaces a flag. */
function overriddenBy({ name, taints, criSocket, kubeletExtraArgs = [], droppedFlags = [] }: NodeRegistration) {
  const declared = new Set([...kubeletExtraArgs.map((arg) => arg.name), ...droppedFlags]);
  if (taints !== undefined) declared.add('register-with-taints');
  if (criSocket !== undefined) declared.add(SOCKET_FLAG);
  return (flag: PlacedFlag): boolean =>
    declared.has(flag.name) || (flag.name === 'hostname-override' && name !== undefined && nodeNameOf(name) !== nodeNameOf(flag.value));
}

function isIn(flags: readonly PlacedFlag[], name: string): boolean {
  return flags.some((flag) => flag.name === name);
}

function noSuchFlag(name: string): Problem {
  return {
    code: 'KUBELET_FLAG_UNKNOWN',
    message: `--kubelet-extra-args ${name}-: no kubelet has a flag --${name}`,
    hint: 'Check the spelling; kubelet --help lists the flags',
  };
}

function notDropped({ name: host }: Host, { name, source }: PlacedFlag): Problem {
  return {
    host,
    code: 'KUBELET_FLAG_NOT_DROPPED',
    message: `--kubelet-extra-args ${name}- has no effect: ${source} sets the flag, also with kubeadm's unit`,
    hint: `Remove the flag from ${source}`,
  };
}
