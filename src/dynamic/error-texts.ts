/** A text of `status.config.error`, and what a user makes of it. */
export interface ConfigErrorText {
  readonly code: ConfigErrorCode;
  /** As the kubelet writes it. */
  readonly text: string;
  /** What happened, as a clause. */
  readonly cause: string;
  readonly hint: string;
  /** True: the kubelet runs with the last known good or the local configuration. False: it goes on as it was and tries again. */
  readonly rolledBack: boolean;
}

export type ConfigErrorCode =
  | 'LOAD_FAILED'
  | 'VALIDATION_FAILED'
  | 'INTERNAL_FAILURE'
  | 'DOWNLOAD_FAILED'
  | 'SYNC_INTERNAL_FAILURE'
  | 'UNKNOWN_SOURCE';

const SEE_LOG = ', see Kubelet log for details';
const SYNC = 'failed to sync: ';

/**
 * The texts of the kubelets 1.11 to 1.23, which the agent uses where they fit.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/status (1.21)
 */
export const CONFIG_ERRORS: Readonly<Record<ConfigErrorCode, ConfigErrorText>> = {
  LOAD_FAILED: {
    code: 'LOAD_FAILED',
    text: `failed to load config${SEE_LOG}`,
    cause: 'the payload could not be read: its key is not in the ConfigMap, it is no KubeletConfiguration, or a value has the wrong type',
    hint: 'Check the file with config validate, push it and assign what that makes',
    rolledBack: true,
  },
  VALIDATION_FAILED: {
    code: 'VALIDATION_FAILED',
    text: `failed to validate config${SEE_LOG}`,
    cause: 'the kubelet refuses the payload: a value is out of range, or a feature gate is not known to it',
    hint: 'Check the file with config validate and the version of this kubelet, push it and assign what that makes',
    rolledBack: true,
  },
  INTERNAL_FAILURE: {
    code: 'INTERNAL_FAILURE',
    text: `internal failure${SEE_LOG}`,
    cause: 'the flags of the kubelet could not be laid over the payload',
    hint: 'Check the flags of the kubelet with node explain',
    rolledBack: true,
  },
  DOWNLOAD_FAILED: {
    code: 'DOWNLOAD_FAILED',
    text: `${SYNC}failed to download config${SEE_LOG}`,
    cause: 'the ConfigMap is not there, the node may not read it, or the API server did not answer',
    hint: 'Create the ConfigMap or assign another: the kubelet tries again every 10 s and goes on as it was until then',
    rolledBack: false,
  },
  SYNC_INTERNAL_FAILURE: {
    code: 'SYNC_INTERNAL_FAILURE',
    text: `${SYNC}internal failure${SEE_LOG}`,
    cause: 'the payload could not be written to the node: its disk is full or read-only, or a key of the ConfigMap is no file name',
    hint: 'Look at the disk of the node; the kubelet tries again every 10 s',
    rolledBack: false,
  },
  UNKNOWN_SOURCE: {
    code: 'UNKNOWN_SOURCE',
    text: `${SYNC}invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil`,
    cause: 'spec.configSource names no ConfigMap',
    hint: 'Assign a ConfigMap, or reset the node',
    rolledBack: false,
  },
};

/**
 * Finds what a text of `status.config.error` stands for. The prefix of syncing may be missing: documentation and kubelets differ in it.
 * @returns null for a text that no known kubelet writes
 */
export function findConfigError(text: string): ConfigErrorText | null {
  const all = Object.values(CONFIG_ERRORS);
  return all.find((one) => one.text === text) ?? all.find((one) => one.text === `${SYNC}${text}`) ?? null;
}
