import type { Problem } from '../../base/errors.ts';
import type { KubeletAcceptance } from '../facts/kubelet-acceptance.ts';

export interface OwnVerdict {
  readonly file: string;
  /** Our rules find nothing that keeps a kubelet from reading it: unknown and duplicate fields do not. */
  readonly accepts: boolean;
}

/**
 * Holds a kubelet's own verdict against ours.
 * @param kubelet who said it, e.g. `kubelet v1.36.2 of node1`
 * @returns KUBELET_REFUSES (an error) and KUBELET_ACCEPTS (a warning) where the two differ, KUBELET_NOT_ASKED where there is none
 */
export function compareVerdicts(acceptance: KubeletAcceptance, { file, accepts }: OwnVerdict, kubelet: string): readonly Problem[] {
  const position = { file, line: 1, column: 1 };
  switch (acceptance.verdict) {
    case 'unknown':
      return [{ code: 'KUBELET_NOT_ASKED', severity: 'warning', message: `${kubelet} could not be asked: ${acceptance.why}`, position }];
    case 'accepted':
      if (accepts) return [];
      return [
        {
          code: 'KUBELET_ACCEPTS',
          severity: 'warning',
          message: `${kubelet} accepts this configuration, against what is said here`,
          hint: "The kubelet's word counts: please report the difference",
          position,
        },
      ];
    case 'refused':
      if (!accepts) return [];
      return [
        { code: 'KUBELET_REFUSES', message: `${kubelet} refuses this configuration: ${acceptance.cause}`, hint: acceptance.hint, position },
      ];
  }
}
