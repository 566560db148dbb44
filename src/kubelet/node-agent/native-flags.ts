import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { execStartWords, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { commandLineWithDropIn, lastFlag, withoutDropIn, writtenCommand } from '../../host/systemd/try-drop-in.ts';
import { parseUnitFile, unitValues } from '../../host/systemd/unit-file.ts';
import type { Minor } from '../catalogue/catalogue.ts';

/** Starts a kubelet up to 1.23 with a directory for its dynamic configuration. */
export const NATIVE_DROP_IN = '/etc/systemd/system/kubelet.service.d/20-kubeletadm-dynamic-config.conf';
/** Directory used by kubeadm up to 1.19. */
export const NATIVE_DIRECTORY = '/var/lib/kubelet/dynamic-config';
/** From this minor version on the feature needs its gate, set as a flag: the configuration file is read too late. */
export const FIRST_GATED_MINOR = 22;
const GATE = 'DynamicKubeletConfig';

/**
 * The drop-in that starts a kubelet with `--dynamic-config-dir`, with the gate from 1.22 on, and always
 * restarted by systemd. Existing files are not changed. Whether the flags take effect is checked on the texts
 * before the host is changed.
 * @returns `up-to-date`: others already configured these flags
 */
export function nativeFlags(
  templates: Templates,
  texts: UnitTexts,
  { directory, minor }: { readonly directory: string; readonly minor: Minor },
):
  | { readonly kind: 'up-to-date' }
  | { readonly kind: 'drop-in'; readonly text: string }
  | { readonly kind: 'impossible'; readonly why: string; readonly hint: string } {
  const own = withoutDropIn(texts, NATIVE_DROP_IN);
  const [words, command] = [execStartWords(own.unitFiles, own.environmentFiles), writtenCommand(own)];
  if (words === null || command === null)
    return {
      kind: 'impossible',
      why: 'kubelet.service has no ExecStart, or does not exist',
      hint: 'Join the host to the cluster first (kubeletadm init or kubeletadm join)',
    };
  const directives = own.unitFiles.flatMap(({ text }) => parseUnitFile(text ?? ''));
  // A kubelet that changes its configuration exits with code 0.
  const restarts = unitValues(directives, 'Service', 'Restart').at(-1) === 'always';
  const gated = minor >= FIRST_GATED_MINOR;
  const isSet = (found: Parameters<typeof lastFlag>[0]): boolean =>
    lastFlag(found, 'dynamic-config-dir')?.value === directory && (!gated || gateOf(found) === true);
  const hasDirectory = (lastFlag(words, 'dynamic-config-dir')?.value ?? '') !== '';
  if (hasDirectory && (!gated || gateOf(words) === true) && restarts) return { kind: 'up-to-date' };
  if (directory.includes('\n'))
    return { kind: 'impossible', why: '--dynamic-config-dir contains a line break', hint: 'Pass a path on one line' };
  const text = String(renderTemplate(templates, NATIVE_DROP_IN, { command, directory, gated, restarts }));
  const found = commandLineWithDropIn(own, { path: NATIVE_DROP_IN, text });
  if (isSet(found)) return { kind: 'drop-in', text };
  const shadow = lastFlag(found, 'dynamic-config-dir')?.source ?? 'another drop-in';
  return {
    kind: 'impossible',
    why: `${shadow} overrides the flags of dynamic configuration`,
    hint: 'Remove this drop-in, or rename the file so that its name sorts before 20-kubeletadm',
  };
}

/** The `--dynamic-config-dir` not set by `dynamic enable`, and its file; null: none. */
export function foreignDynamicConfigDir(texts: UnitTexts): { readonly value: string; readonly source: string } | null {
  const own = withoutDropIn(texts, NATIVE_DROP_IN);
  const flag = lastFlag(execStartWords(own.unitFiles, own.environmentFiles) ?? [], 'dynamic-config-dir');
  return flag === null || flag.value === '' ? null : flag;
}

/** The gate according to the flags; the last flag that sets it wins. Null: no flag sets it. */
export function gateOf(words: readonly { readonly word: string; readonly source: string }[]): boolean | null {
  const values = words.flatMap(({ word }, at) => {
    const match = /^--?feature-gates(?:=(.*))?$/s.exec(word);
    return match === null ? [] : (match[1] ?? words[at + 1]?.word ?? '').split(',');
  });
  const reported = values.map((value) => value.trim().split('=')).findLast(([name]) => name === GATE)?.[1];
  return reported === undefined ? null : /^(?:true|1|t)$/i.test(reported);
}
