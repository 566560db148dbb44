import type { Problem } from '../../base/errors.ts';
import type { KubeletAcceptance } from '../facts/kubelet-acceptance.ts';

/**
 * Compares the verdict of a kubelet binary with that of kubeletadm.
 * @param own `accepts`: kubeletadm finds no error that prevents a kubelet from reading the file; unknown and duplicate fields do
 *   not
 * @param kubelet name of the binary, e.g. `kubelet v1.36.2 of node1`
 * @returns KUBELET_REFUSES (an error) or KUBELET_ACCEPTS (a warning) if both differ, KUBELET_NOT_ASKED
 *   without a verdict
 */
export function compareVerdicts(
  acceptance: KubeletAcceptance,
  { file, accepts }: { readonly file: string; readonly accepts: boolean },
  kubelet: string,
): readonly Problem[] {
  const position = { file, line: 1, column: 1 };
  if (acceptance.verdict === 'unknown') {
    const message = `${kubelet} could not validate the file: ${acceptance.why}`;
    return [{ code: 'KUBELET_NOT_ASKED', severity: 'warning', message, position }];
  }
  if (accepts === (acceptance.verdict === 'accepted')) return [];
  if (acceptance.verdict === 'accepted') {
    const message = `${kubelet} accepts this configuration, although validation reports the errors above`;
    const hint = 'The kubelet decides, so the file can be used. Please report the difference as a bug';
    return [{ code: 'KUBELET_ACCEPTS', severity: 'warning', message, hint, position }];
  }
  const cause = acceptance.cause.replace(/^the kubelet refuses its configuration: /, '');
  return [{ code: 'KUBELET_REFUSES', message: `${kubelet} refuses this configuration: ${cause}`, hint: acceptance.hint, position }];
}
