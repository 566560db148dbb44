const SEE_LOG = ', see Kubelet log for details';
const SYNC = 'failed to sync: ';

/**
 * The error texts of kubelets 1.11 to 1.23. The agent uses them where they apply.
 * @see kubernetes/kubernetes pkg/kubelet/kubeletconfig/status (1.21)
 */
export const CONFIG_ERRORS = {
  LOAD_FAILED: {
    code: 'LOAD_FAILED',
    text: `failed to load config${SEE_LOG}`,
    cause:
      'the configuration could not be read: the key is missing in the ConfigMap, the document is not a KubeletConfiguration, or a value has the wrong type',
    hint: 'Check the file with kubeletadm config validate, then push the file and assign the new ConfigMap',
    rolledBack: true,
  },
  VALIDATION_FAILED: {
    code: 'VALIDATION_FAILED',
    text: `failed to validate config${SEE_LOG}`,
    cause: 'the kubelet refuses the configuration: a value is out of range, or a feature gate is unknown',
    hint: 'Check the file with kubeletadm config validate for the version of this kubelet, then push the file and assign the new ConfigMap',
    rolledBack: true,
  },
  INTERNAL_FAILURE: {
    code: 'INTERNAL_FAILURE',
    text: `internal failure${SEE_LOG}`,
    cause: 'the kubelet could not combine its flags with the configuration',
    hint: 'Check the flags of the kubelet: kubeletadm node explain HOST',
    rolledBack: true,
  },
  DOWNLOAD_FAILED: {
    code: 'DOWNLOAD_FAILED',
    text: `${SYNC}failed to download config${SEE_LOG}`,
    cause: 'the ConfigMap does not exist, the node is not allowed to read it, or the API server did not respond',
    hint: 'Create the ConfigMap, or assign another one. Until then, the kubelet keeps its current configuration and tries again every 10 s',
    rolledBack: false,
  },
  SYNC_INTERNAL_FAILURE: {
    code: 'SYNC_INTERNAL_FAILURE',
    text: `${SYNC}internal failure${SEE_LOG}`,
    cause:
      'the configuration could not be written to the node: the disk is full or read-only, or a key of the ConfigMap is not a valid file name',
    hint: 'Check the disk of the node. The kubelet tries again every 10 s',
    rolledBack: false,
  },
  UNKNOWN_SOURCE: {
    code: 'UNKNOWN_SOURCE',
    text: `${SYNC}invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil`,
    cause: 'spec.configSource does not name a ConfigMap',
    hint: 'Assign a ConfigMap, or remove the assignment: kubeletadm dynamic reset NODE',
    rolledBack: false,
  },
} as const satisfies Readonly<
  Record<
    string,
    {
      readonly code: string;
      /** As written by the kubelet. */
      readonly text: string;
      /** The cause as a clause. */
      readonly cause: string;
      readonly hint: string;
      /**
       * True: the kubelet runs the last known good or the local configuration. False: the kubelet keeps its
       * configuration and retries.
       */
      readonly rolledBack: boolean;
    }
  >
>;

export type ConfigErrorCode = keyof typeof CONFIG_ERRORS;

/**
 * Finds the explanation of a text of `status.config.error`. The prefix `failed to sync: ` is optional:
 * documentation and kubelets differ.
 * @returns null for an unknown text
 */
export function findConfigError(text: string): (typeof CONFIG_ERRORS)[ConfigErrorCode] | null {
  const all = Object.values(CONFIG_ERRORS);
  return all.find((one) => one.text === text) ?? all.find((one) => one.text === `${SYNC}${text}`) ?? null;
}
