import type { Arg } from '../base/arg.ts';
import { AppError } from '../base/errors.ts';
import { quoteGo } from '../base/text/go-quote.ts';
import { parseEnvironmentFile, splitCommandWords } from '../host/systemd/environment.ts';
import type { Taint } from '../kube/taint.ts';
import { formatTaint } from '../kube/taint.ts';
import { nodeLabelIssues } from './node-labels.ts';

export interface KubeletFlagsInput {
  /** The host's own name, lower-case; null when it can't be known: the node name is then always written. */
  readonly hostname: string | null;
  /** `nodeRegistration.name`. */
  readonly nodeName: string;
  /** `nodeRegistration.kubeletExtraArgs`, in the user's order. */
  readonly extraArgs: readonly Arg[];
  readonly criSocket: string;
  /** Taints the kubelet registers with: only those of a joining worker. */
  readonly registerWithTaints: readonly Taint[];
  /** Minor version of the kubelet: 36 for 1.36. */
  readonly kubeletMinor: number;
  /** kubeadm's feature gate of this name; off, the socket stays among the flags. */
  readonly nodeLocalCRISocket: boolean;
}

/**
 * Whether the kubelet is told the runtime's socket by a flag: one older than 1.27 has no field for it, and kubeadm does so with its gate
 * NodeLocalCRISocket off. Else the socket is in instance-config.yaml, and from there in config.yaml.
 */
export function isSocketFlag({
  kubeletMinor,
  nodeLocalCRISocket,
}: Pick<KubeletFlagsInput, 'kubeletMinor' | 'nodeLocalCRISocket'>): boolean {
  return kubeletMinor < 27 || !nodeLocalCRISocket;
}

/**
 * The flags of kubeadm-flags.env: kubeadm's own ones sorted, without those the user gave; then the user's in the order given, duplicates kept.
 * The socket is among them where `isSocketFlag` says so; kubelets that knew dockershim (up to 1.23) also need `--container-runtime=remote`.
 * @see kubeadm 1.36 phases/kubelet/flags.go and util/arguments.go; kubeadm 1.23 for the older flags
 */
export function buildKubeletFlags(input: KubeletFlagsInput): readonly Arg[] {
  const nodeName = input.extraArgs.findLast((flag) => flag.name === 'hostname-override')?.value ?? input.nodeName;
  const base: Arg[] = [];
  if (isSocketFlag(input)) base.push({ name: 'container-runtime-endpoint', value: input.criSocket });
  if (input.kubeletMinor < 24) base.push({ name: 'container-runtime', value: 'remote' });
  if (input.registerWithTaints.length > 0)
    base.push({ name: 'register-with-taints', value: input.registerWithTaints.map(formatTaint).join(',') });
  if (nodeName !== input.hostname) base.push({ name: 'hostname-override', value: nodeName });
  const given = new Set(input.extraArgs.map((flag) => flag.name));
  const own = base.filter((flag) => !given.has(flag.name)).sort((a, b) => compare(a.name, b.name) || compare(a.value, b.value));
  return [...own, ...input.extraArgs];
}

/**
 * The one line of kubeadm-flags.env that systemd reads.
 * @returns `KUBELET_KUBEADM_ARGS="--a=b --c=d"` and a newline
 * @throws AppError FLAG_NOT_ENCODABLE when systemd could not read the flags back: control characters, blanks outside quotes, open quotes, lone backslashes
 * @see kubeadm 1.36 phases/kubelet/flags.go (Go's %q around the joined line)
 */
export function renderFlagsEnv(flags: readonly Arg[]): string {
  for (const flag of flags) requireEncodable(flag);
  return `KUBELET_KUBEADM_ARGS=${quoteGo(flags.map(formatFlag).join(' '))}\n`;
}

function formatFlag(flag: Arg): string {
  return `--${flag.name}=${flag.value}`;
}

/** systemd takes a backslash away and keeps what follows: meant before a quote, a blank or another backslash, a loss elsewhere. */
const LOST_BACKSLASH = /^(?:[^\\]|\\["'\\ ])*\\[^"'\\ ]/;

/** The file must read back, and each flag must stay one word of the command line. */
function requireEncodable(flag: Arg): void {
  const written = formatFlag(flag);
  const read = parseEnvironmentFile(`FLAG=${quoteGo(written)}`).get('FLAG');
  if (read === written && isOneWord(written, `--${flag.name}=`) && !LOST_BACKSLASH.test(written)) return;
  // No quoting makes a valid label of such a value.
  const [label] = flag.name === 'node-labels' ? nodeLabelIssues(flag.value, { byAdministrator: true }) : [];
  throw new AppError(
    {
      code: 'FLAG_NOT_ENCODABLE',
      path: `kubeletExtraArgs ${flag.name}`,
      message:
        label ??
        'systemd cannot pass this value to the kubelet: it contains a space outside quotes, an unclosed quote, a single backslash or a control character',
      hint:
        label === undefined
          ? 'Put double quotes around the part with the space, inside the value; write each backslash twice'
          : 'Write labels like pool=edge,zone=a',
    },
    { exitCode: 2 },
  );
}

/** No blank outside quotes, at the end neither, and no quote left open that would swallow the next flag. */
function isOneWord(text: string, start: string): boolean {
  const [word, second, ...more] = splitCommandWords(`${text} --next`);
  return word?.startsWith(start) === true && second === '--next' && more.length === 0 && splitCommandWords(`${text}.`).length === 1;
}

/** The words systemd makes of a kubeadm-flags.env; empty when the variable is missing. */
export function readFlagsEnv(text: string): readonly string[] {
  return splitCommandWords(parseEnvironmentFile(text).get('KUBELET_KUBEADM_ARGS') ?? '');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
