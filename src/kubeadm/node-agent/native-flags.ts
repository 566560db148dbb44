import { execStartWords, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { lastFlag, withoutDropIn, wordsWithDropIn, writtenCommand } from '../../host/systemd/try-drop-in.ts';
import { parseUnitFile, unitValues } from '../../host/systemd/unit-file.ts';
import type { Minor } from '../../kubelet/catalogue.ts';

/** Starts a kubelet up to 1.23 with a directory for its dynamic configuration. */
export const NATIVE_DROP_IN = '/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf';
/** Where kubeadm up to 1.19 had it. */
export const NATIVE_DIRECTORY = '/var/lib/kubelet/dynamic-config';
/** From this minor on the feature is off unless its gate is given, and as a flag: in the file it comes too late. */
export const FIRST_GATED_MINOR = 22;
const GATE = 'DynamicKubeletConfig';

export interface NativeFlagsOptions {
  readonly directory: string;
  readonly minor: Minor;
}

export type NativeFlags =
  /** It is started so already, by others. */
  | { readonly kind: 'up-to-date' }
  | { readonly kind: 'drop-in'; readonly text: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly hint: string };

/**
 * The drop-in that starts a kubelet with `--dynamic-config-dir`, and from 1.22 on the gate, and has systemd start it again whatever it ends of. Nothing of what is
 * there is changed; whether the flags win is tried on the texts before a host is touched.
 */
export function nativeFlags(texts: UnitTexts, { directory, minor }: NativeFlagsOptions): NativeFlags {
  const own = withoutDropIn(texts, NATIVE_DROP_IN);
  const [words, command] = [execStartWords(own.unitFiles, own.environmentFiles), writtenCommand(own)];
  if (words === null || command === null)
    return { kind: 'impossible', why: 'there is no unit kubelet.service with an ExecStart', hint: 'Run init or join first' };
  const directives = own.unitFiles.flatMap(({ text }) => parseUnitFile(text ?? ''));
  // A kubelet that changes its configuration leaves with exit code 0.
  const restarts = unitValues(directives, 'Service', 'Restart').at(-1) === 'always';
  const gated = minor >= FIRST_GATED_MINOR;
  const isSet = (found: Parameters<typeof lastFlag>[0]): boolean =>
    lastFlag(found, 'dynamic-config-dir')?.value === directory && (!gated || gateOf(found) === true);
  const hasDirectory = (lastFlag(words, 'dynamic-config-dir')?.value ?? '') !== '';
  if (hasDirectory && (!gated || gateOf(words) === true) && restarts) return { kind: 'up-to-date' };
  const flags = [`--dynamic-config-dir=${directory}`, ...(gated ? [`--feature-gates=${GATE}=true`] : [])].join(' ');
  const restart = restarts ? '' : 'Restart=always\n';
  const text = `# Written by kubeletadm: where the kubelet keeps configurations from the cluster.\n[Service]\n${restart}ExecStart=\nExecStart=${command} ${flags}\n`;
  if (isSet(wordsWithDropIn(own, { path: NATIVE_DROP_IN, text }))) return { kind: 'drop-in', text };
  const found = wordsWithDropIn(own, { path: NATIVE_DROP_IN, text });
  const shadow = lastFlag(found, 'dynamic-config-dir')?.source ?? 'another drop-in';
  return {
    kind: 'impossible',
    why: `${shadow} starts the kubelet otherwise`,
    hint: 'Take that out, or rename it to come before 20-kubeletadm',
  };
}

/** The `--dynamic-config-dir` that a kubelet has from others than `dynamic enable`, and the file it is from; null: none. */
export function foreignDirectory(texts: UnitTexts): { readonly value: string; readonly source: string } | null {
  const own = withoutDropIn(texts, NATIVE_DROP_IN);
  const flag = lastFlag(execStartWords(own.unitFiles, own.environmentFiles) ?? [], 'dynamic-config-dir');
  return flag === null || flag.value === '' ? null : flag;
}

/** What the flags say of the gate: the last one that names it counts. */
function gateOf(words: readonly { readonly word: string; readonly source: string }[]): boolean | null {
  const values = words.flatMap(({ word }, at) => {
    const match = /^--?feature-gates(?:=(.*))?$/s.exec(word);
    return match === null ? [] : (match[1] ?? words[at + 1]?.word ?? '').split(',');
  });
  const reported = values.map((value) => value.trim().split('=')).findLast(([name]) => name === GATE)?.[1];
  return reported === undefined ? null : /^(?:true|1|t)$/i.test(reported);
}
