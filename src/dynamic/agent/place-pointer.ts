import { execStartWords, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { lastFlag, withoutDropIn, wordsWithDropIn, writtenCommand } from '../../host/systemd/try-drop-in.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../../kubeadm/node-agent/agent-units.ts';
import { formatPointer, hashInPath, pointerFile } from '../../kubeadm/node-agent/layout.ts';

/** What it takes for a kubelet to read the configuration the pointer names. */
export type PointerPlace =
  | {
      readonly kind: 'drop-in';
      readonly text: string;
      /** What it reads while there is no pointer. */
      readonly localConfig: string;
    }
  | { readonly kind: 'impossible'; readonly why: string; readonly hint: string };

/** The variable that kubeadm's drop-in starts the kubelet with. */
const VARIABLE = 'KUBELET_CONFIG_ARGS';
const SAMPLE = '0'.repeat(64);

/**
 * The drop-in that has a kubelet read the configuration the pointer names, and its own where there is no pointer. Nothing of what is there is changed: where the
 * unit takes its configuration from `KUBELET_CONFIG_ARGS`, as kubeadm's does, the pointer gives that variable its value; else the variable is put at the end of
 * the unit's own command line, where it wins. Whether it does is tried on the texts before a host is touched.
 */
export function placePointer(texts: UnitTexts, directory: string): PointerPlace {
  const own = withoutDropIn(texts, POINTER_DROP_IN);
  const [words, command] = [execStartWords(own.unitFiles, own.environmentFiles), writtenCommand(own)];
  if (words === null || command === null)
    return { kind: 'impossible', why: 'there is no unit kubelet.service with an ExecStart', hint: 'Run init or join first' };
  const local = lastFlag(words, 'config')?.value ?? '';
  if (local === '')
    return {
      kind: 'impossible',
      why: 'the kubelet is started without --config: it has no local configuration to go back to',
      hint: 'Give it a configuration file (init and join do)',
    };
  const pointer = { path: pointerFile(directory), text: formatPointer(directory, SAMPLE) };
  const plain = renderPointerDropIn(directory);
  let shadow = '';
  for (const text of [plain, `${plain}ExecStart=\nExecStart=${command} $${VARIABLE}\n`]) {
    const found = lastFlag(wordsWithDropIn(own, { path: POINTER_DROP_IN, text }, [pointer]), 'config');
    if (hashInPath(found?.value ?? '') === SAMPLE) return { kind: 'drop-in', text, localConfig: local };
    shadow = found?.source ?? '';
  }
  return {
    kind: 'impossible',
    why: `--config of ${shadow} wins over what the agent says`,
    hint: `Take it out there, or have the unit read $${VARIABLE} last`,
  };
}
