import type { Arg } from '../../base/arg.ts';
import { AppError, type Problem } from '../../base/errors.ts';
import { quoteGo } from '../../base/text/go-quote.ts';
import { parseEnvironmentFile, splitCommandWords } from '../../host/systemd/environment.ts';
import { formatTaint, type Taint } from '../../kube/taint.ts';
import type { KubeletReader } from '../catalogue/catalogue.ts';
import { parseCommandLine } from './command-line.ts';
import { nodeLabelIssues } from './node-labels.ts';

export interface KubeletFlagsInput {
  /** The host name in lower case; null if unknown: the node name is then always written. */
  readonly hostname: string | null;
  /** `nodeRegistration.name`. */
  readonly nodeName: string;
  /** `nodeRegistration.kubeletExtraArgs`, in the given order. */
  readonly extraArgs: readonly Arg[];
  readonly criSocket: string;
  /** Taints for the registration: only those of a joining worker. */
  readonly registerWithTaints: readonly Taint[];
  /** Minor version of the kubelet: 36 for 1.36. */
  readonly kubeletMinor: number;
  /** kubeadm's feature gate of this name; when off, the socket stays a flag. */
  readonly nodeLocalCRISocket: boolean;
  /** Directory of configuration drop-in files. Absent or null: none. */
  readonly configDir?: string | null;
}

/**
 * Whether the kubelet gets the runtime's socket as a flag: kubelets before 1.27 have no field for it, and
 * kubeadm uses the flag when its gate NodeLocalCRISocket is off. Otherwise the socket is in
 * instance-config.yaml and merged into config.yaml.
 */
export function isSocketFlag({
  kubeletMinor,
  nodeLocalCRISocket,
}: Pick<KubeletFlagsInput, 'kubeletMinor' | 'nodeLocalCRISocket'>): boolean {
  return kubeletMinor < 27 || !nodeLocalCRISocket;
}

/**
 * The flags of kubeadm-flags.env: kubeadm's own flags sorted, except those given by the user; then the user's
 * in the given order, with duplicates. `isSocketFlag` decides on the socket; kubelets with dockershim (up to
 * 1.23) also need `--container-runtime=remote`.
 * @see kubeadm 1.36 phases/kubelet/flags.go and util/arguments.go; kubeadm 1.23 for the older flags
 */
export function buildKubeletFlags(input: KubeletFlagsInput): readonly Arg[] {
  const nodeName = input.extraArgs.findLast((flag) => flag.name === 'hostname-override')?.value ?? input.nodeName;
  const base: Arg[] = [];
  if (isSocketFlag(input)) base.push({ name: 'container-runtime-endpoint', value: input.criSocket });
  if (input.kubeletMinor < 24) base.push({ name: 'container-runtime', value: 'remote' });
  if (input.registerWithTaints.length > 0)
    base.push({ name: 'register-with-taints', value: input.registerWithTaints.map(formatTaint).join(',') });
  if (input.configDir != null) base.push({ name: 'config-dir', value: input.configDir });
  if (nodeName !== input.hostname) base.push({ name: 'hostname-override', value: nodeName });
  const given = new Set(input.extraArgs.map((flag) => flag.name));
  const own = base.filter((flag) => !given.has(flag.name)).sort((a, b) => compare(a.name, b.name) || compare(a.value, b.value));
  return [...own, ...input.extraArgs];
}

/**
 * Renders the line of kubeadm-flags.env that systemd reads.
 * @returns `KUBELET_KUBEADM_ARGS="--a=b --c=d"` and a newline
 * @throws AppError FLAG_NOT_ENCODABLE if systemd could not read the flags back: control characters, unquoted
 *   spaces, unclosed quotes, single backslashes
 * @see kubeadm 1.36 phases/kubelet/flags.go (Go's %q around the joined line)
 */
export function renderFlagsEnv(flags: readonly Arg[]): string {
  return `KUBELET_KUBEADM_ARGS=${quoteGo(joinFlags(flags))}\n`;
}

/**
 * The flags as the one line that is the value of `KUBELET_KUBEADM_ARGS`, before it is quoted.
 * @throws AppError as `renderFlagsEnv`
 */
export function joinFlags(flags: readonly Arg[]): string {
  for (const flag of flags) {
    const problem = flagProblem(flag);
    if (problem !== null) throw new AppError({ ...problem, path: `kubelet flag --${flag.name}` }, { exitCode: 2 });
  }
  return flags.map(formatFlag).join(' ');
}

function formatFlag(flag: Arg): string {
  return `--${flag.name}=${flag.value}`;
}

/**
 * systemd removes a backslash and keeps the next character: correct before a quote, a space or a backslash, a
 * loss elsewhere.
 */
const LOST_BACKSLASH = /^(?:[^\\]|\\["'\\ ])*\\[^"'\\ ]/;

/**
 * The problem FLAG_NOT_ENCODABLE of a flag, without its place; null: none. The file must be read back
 * unchanged, and each flag must remain one word of the command line.
 */
export function flagProblem(flag: Arg): Problem | null {
  const written = formatFlag(flag);
  const read = parseEnvironmentFile(`FLAG=${quoteGo(written)}`).get('FLAG');
  if (read === written && isOneWord(written, `--${flag.name}=`) && !LOST_BACKSLASH.test(written)) return null;
  // No quoting turns such a value into a valid label.
  const [label] = flag.name === 'node-labels' ? nodeLabelIssues(flag.value, { byAdministrator: true }) : [];
  return {
    code: 'FLAG_NOT_ENCODABLE',
    message:
      label ??
      'systemd cannot pass this value to the kubelet: the value contains a space outside quotes, an unclosed quote, a single backslash or a control character',
    hint:
      label === undefined
        ? 'Inside the value, put double quotes around the part with the space, and write each backslash twice'
        : 'Write the labels as comma-separated pairs without spaces, for example pool=edge,zone=a',
  };
}

/** A value as one word of the line, which systemd reads back unchanged. */
export function quoteFlagValue(value: string): string {
  return /[\s"'\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value;
}

/**
 * Whether the text has no unquoted space, also at its end, and no unclosed quote that would extend into the
 * next flag.
 */
function isOneWord(text: string, start: string): boolean {
  const [word, second, ...more] = splitCommandWords(`${text} --next`);
  return word?.startsWith(start) === true && second === '--next' && more.length === 0 && splitCommandWords(`${text}.`).length === 1;
}

/** The words that systemd reads from a kubeadm-flags.env; empty if the variable is missing. */
export function readFlagsEnv(text: string): readonly string[] {
  return splitCommandWords(parseEnvironmentFile(text).get('KUBELET_KUBEADM_ARGS') ?? '');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export interface UpgradedFlags {
  /** The remaining flags, in their order. */
  readonly flags: readonly Arg[];
  /** Flags written by kubeadm that this kubelet no longer has: it would not start with them. */
  readonly dropped: readonly Arg[];
  /** The last `container-runtime-endpoint`, kept or removed. */
  readonly criSocket: string | null;
  /** Whether the file must be rewritten. */
  readonly changed: boolean;
}

/**
 * Flags that a version of kubeadm wrote and a later kubelet rejects.
 * @see kubeadm 1.11 to 1.35 phases/kubelet/flags.go
 */
const KUBEADM_MADE: ReadonlySet<string> = new Set([
  'pod-infra-container-image',
  'container-runtime',
  'network-plugin',
  'cni-conf-dir',
  'cni-bin-dir',
  'dynamic-config-dir',
]);

/**
 * Computes kubeadm-flags.env for an upgraded node. kubeadm's own rewrite sorts the flags and damages quoted
 * values; here order and values are preserved.
 * @param text content of the file; empty: no file
 * @param options.moveSocket move the socket to instance-config.yaml
 * @see kubeadm 1.36 phases/upgrade/postupgrade.go (the socket), 1.35 (`pod-infra-container-image`)
 */
export function upgradeFlags(
  text: string,
  { minor, catalogue, moveSocket }: KubeletReader & { readonly moveSocket: boolean },
): UpgradedFlags {
  const found = parseCommandLine(readFlagsEnv(text), { minor, catalogue }).flags.map(
    ({ name, value }): Arg => ({ name, value: quoteFlagValue(value) }),
  );
  const isGone = ({ name }: Arg): boolean => KUBEADM_MADE.has(name) && catalogue.flag(name, minor) === null;
  const isSocket = ({ name }: Arg): boolean => name === 'container-runtime-endpoint';
  const dropped = found.filter(isGone);
  const flags = found.filter((flag) => !isGone(flag) && !(moveSocket && isSocket(flag)));
  return { flags, dropped, criSocket: found.findLast(isSocket)?.value ?? null, changed: flags.length < found.length };
}
