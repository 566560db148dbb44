import { usageError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { Secret } from '../../base/text/secret.ts';
import { DEFAULT_CRI_SOCKET } from '../../kubelet/facts/cri-socket.ts';
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
import { defaultKubeProxyConfiguration } from './kube-proxy-config.ts';

export type DefaultsAction = 'init' | 'join' | 'reset' | 'upgrade';

interface PrintOptions {
  /** Hostname of the local host: the node name in `join-defaults`. */
  readonly hostname: string;
  /** Printed as `kubernetesVersion`, e.g. `1.36.0`. */
  readonly kubernetesVersion: string;
  /** Additional kinds to print; only with `init`. */
  readonly componentConfigs?: readonly string[];
  /** The KubeletConfiguration to print on request. */
  readonly kubeletConfiguration?: string;
}

const SAMPLE_TOKEN = new Secret('abcdef.0123456789abcdef');

/**
 * The output of `config print init-defaults` and similar: sample documents of an action with their defaults.
 * @returns YAML with a placeholder token
 * @throws AppError USAGE for an unknown component, or for components with an action other than init
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
    if (kind === 'KubeProxyConfiguration') return defaultKubeProxyConfiguration({ advertiseAddress: '1.2.3.4' });
    if (kind === 'KubeletConfiguration' && kubeletConfiguration !== undefined) return kubeletConfiguration;
    throw usageError(`--component-configs: unknown kind ${JSON.stringify(kind)}`, `Supported kinds: ${COMPONENTS.join(', ')}`);
  });
}
