import type { Templates } from '../../codec/render-template.ts';
import { execStartWords, type UnitTexts } from '../../host/systemd/exec-start.ts';
import { commandLineWithDropIn, lastFlag, withoutDropIn, writtenCommand } from '../../host/systemd/try-drop-in.ts';
import { POINTER_DROP_IN, renderPointerDropIn } from '../../kubelet/node-agent/agent-units.ts';
import { formatPointer, hashInPath, pointerFile } from '../../kubelet/node-agent/layout.ts';

/** The drop-in that makes a kubelet read the configuration named by the pointer. */
type PointerDropIn =
  | {
      readonly kind: 'drop-in';
      readonly text: string;
      /** The configuration without a pointer. */
      readonly localConfig: string;
    }
  | { readonly kind: 'impossible'; readonly why: string; readonly hint: string };

/** The variable with the kubelet's --config flag in kubeadm's drop-in. */
const VARIABLE = 'KUBELET_CONFIG_ARGS';
const SAMPLE = '0'.repeat(64);

/**
 * Plans the drop-in that makes a kubelet read the configuration named by the pointer, or its own
 * configuration without a pointer. Existing files are not changed: if the unit uses `KUBELET_CONFIG_ARGS`, as
 * kubeadm's does, the pointer sets that variable; otherwise the variable is appended to the unit's command
 * line, where it takes precedence. The result is verified on the texts before the host is changed.
 */
export function planPointerDropIn(templates: Templates, texts: UnitTexts, directory: string): PointerDropIn {
  const own = withoutDropIn(texts, POINTER_DROP_IN);
  const [words, command] = [execStartWords(own.unitFiles, own.environmentFiles), writtenCommand(own)];
  if (words === null || command === null)
    return {
      kind: 'impossible',
      why: 'the unit kubelet.service does not exist or has no ExecStart',
      hint: 'Join the host to the cluster first (kubeletadm init or kubeletadm join)',
    };
  const local = lastFlag(words, 'config')?.value ?? '';
  if (local === '')
    return {
      kind: 'impossible',
      why: 'the kubelet runs without --config, so a rollback would have no local configuration',
      hint: 'Start the kubelet with --config FILE, as kubeletadm init and kubeletadm join do',
    };
  const pointer = { path: pointerFile(directory), text: formatPointer(directory, SAMPLE) };
  let shadow = '';
  for (const appended of [null, command]) {
    const text = renderPointerDropIn(templates, directory, appended);
    const found = lastFlag(commandLineWithDropIn(own, { path: POINTER_DROP_IN, text }, [pointer]), 'config');
    if (hashInPath(found?.value ?? '') === SAMPLE) return { kind: 'drop-in', text, localConfig: local };
    shadow = found?.source ?? '';
  }
  return {
    kind: 'impossible',
    why: `${shadow} sets --config, which overrides the configuration that the agent selects`,
    hint: `Remove --config from that file, or make the unit read $${VARIABLE} last`,
  };
}
