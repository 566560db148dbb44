import { usageError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { Secret } from '../../base/text/secret.ts';
import { DEFAULT_CRI_SOCKET } from '../../kubelet/facts/cri-socket.ts';
import { kubeProxyConfiguration } from '../addons/kube-proxy-config.ts';
import {
  applyClusterDefaults,
  applyInitDefaults,
  applyJoinDefaults,
  applyResetDefaults,
  applyUpgradeDefaults,
  type HostDefaults,
} from './defaults.ts';
import {
  encodeClusterConfiguration,
  encodeInitConfiguration,
  encodeJoinConfiguration,
  encodeResetConfiguration,
  encodeUpgradeConfiguration,
  renderConfig,
} from './encode.ts';

export type DefaultsAction = 'init' | 'join' | 'reset' | 'upgrade';

export interface PrintOptions {
  /** Hostname of the machine: the node's name in `join-defaults`. */
  readonly hostname: string;
  /** Printed as `kubernetesVersion`, e.g. `1.36.0`. */
  readonly kubernetesVersion: string;
  /** Kinds to print after the others; only with `init`. */
  readonly componentConfigs?: readonly string[];
  /** The KubeletConfiguration to print when it is asked for. */
  readonly kubeletConfiguration?: string;
}

/** A token that looks like one and is none: in samples only. */
const SAMPLE_TOKEN = new Secret('abcdef.0123456789abcdef');

/**
 * What `config print init-defaults` and its like print: samples of all documents of an action with their defaults.
 * @returns YAML; the token in it is a sample
 * @throws AppError USAGE for a component that is not known, or components of another action than init
 * @see kubernetes/kubernetes cmd/kubeadm/app/cmd/config.go (1.36)
 */
export function printDefaults(action: DefaultsAction, options: PrintOptions): string {
  const components = componentDocuments(action, options);
  return renderConfig([...sampleDocuments(action, options), ...components]).reveal();
}

function sampleDocuments(action: DefaultsAction, { hostname, kubernetesVersion }: PrintOptions) {
  const host: HostDefaults = { hostname, criSockets: [DEFAULT_CRI_SOCKET], defaultRoute: { ipv4: '1.2.3.4' } };
  switch (action) {
    case 'init': {
      const { nodeRegistration, ...init } = applyInitDefaults({ bootstrapTokens: [{}], nodeRegistration: { name: 'node' } }, host, [
        SAMPLE_TOKEN,
      ]);
      const { taints: _, ...untainted } = nodeRegistration;
      const cluster = { ...applyClusterDefaults({}), kubernetesVersion };
      return [encodeInitConfiguration({ ...init, nodeRegistration: untainted }), encodeClusterConfiguration(cluster)];
    }
    case 'join': {
      const bootstrapToken = { token: SAMPLE_TOKEN, apiServerEndpoint: 'kube-apiserver:6443', unsafeSkipCAVerification: true };
      return [encodeJoinConfiguration(applyJoinDefaults({ discovery: { bootstrapToken } }, host))];
    }
    case 'reset':
      return [encodeResetConfiguration(applyResetDefaults({}, host))];
    case 'upgrade':
      return [encodeUpgradeConfiguration(applyUpgradeDefaults({}))];
  }
}

const COMPONENTS = ['KubeProxyConfiguration', 'KubeletConfiguration'] as const;

function componentDocuments(
  action: DefaultsAction,
  { componentConfigs = [], kubeletConfiguration }: PrintOptions,
): readonly (JsonObject | string)[] {
  if (action !== 'init' && componentConfigs.length > 0) {
    throw usageError('--component-configs is supported only for init-defaults');
  }
  return componentConfigs.map((kind) => {
    if (kind === 'KubeProxyConfiguration') return kubeProxyConfiguration(null, { advertiseAddress: '1.2.3.4' });
    if (kind === 'KubeletConfiguration' && kubeletConfiguration !== undefined) return kubeletConfiguration;
    throw usageError(`--component-configs: unknown kind ${JSON.stringify(kind)}`, `Supported kinds: ${COMPONENTS.join(', ')}`);
  });
}
