import type { Problem } from '../../base/errors.ts';
import type { TextOptions } from '../../kubeadm/use-cases/validate-documents.ts';

/** Options of a command line that apply to each file. */
export interface FileRules extends Pick<TextOptions, 'chosen' | 'allowDeprecated' | 'asKubeadm'> {
  /** Unknown and duplicate fields are warnings. */
  readonly lenient: boolean;
}

export interface FileVerdict {
  readonly file: string;
  readonly problems: readonly Problem[];
}
