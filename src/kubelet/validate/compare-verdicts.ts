import type { Problem } from '../../base/errors.ts';
import type { KubeletAcceptance } from '../facts/kubelet-acceptance.ts';

interface OwnVerdict {
  readonly file: string;
  /**
   * kubeletadm finds no error that prevents a kubelet from reading the file; unknown and duplicate fields do
   * not.
   */
  readonly accepts: boolean;
}

/**
 * Compares the verdict of a kubelet binary with that of kubeletadm.
 * @param kubelet name of the binary, e.g. `kubelet v1.36.2 of node1`
 * @returns KUBELET_REFUSES (an error) or KUBELET_ACCEPTS (a warning) if both differ, KUBELET_NOT_ASKED
 *   without a verdict
 */
export function compareVerdicts(acceptance: KubeletAcceptance, { file, accepts }: OwnVerdict, kubelet: string): readonly Problem[] {
  const position = { file, line: 1, column: 1 };
  switch (acceptance.verdict) {
    case 'unknown':
      return [
        { code: 'KUBELET_NOT_ASKED', severity: 'warning', message: `${kubelet} could not validate the file: ${acceptance.why}`, position },
      ];
    case 'accepted':
      if (accepts) return [];
      return [
        {
          code: 'KUBELET_ACCEPTS',
          severity: 'warning',
          message: `${kubelet} accepts this configuration, although validation reports the errors above`,
          hint: 'The kubelet decides, so the file can be used. Please report the difference as a bug',
          position,
        },
      ];
    case 'refused':
      if (!accepts) return [];
      return [
        {
          code: 'KUBELET_REFUSES',
          message: `${kubelet} refuses this configuration: ${acceptance.cause.replace(/^the kubelet refuses its configuration: /, '')}`,
          hint: acceptance.hint,
          position,
        },
      ];
  }
}
