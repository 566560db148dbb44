import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/decode.ts';
import { effectiveConfiguration } from '../../kubelet/defaults/effective-configuration.ts';
import { encodeKubeletConfiguration } from '../../kubelet/encode.ts';
import type { LayeredConfig } from '../../kubelet/layers.ts';
import { applyClusterDefaults } from '../config/defaults.ts';
import { dnsIp } from '../config/dns-ip.ts';
import { layerClusterConfig } from './cluster-config.ts';

/** `kubelet`: what is in force when the file says nothing. `kubeadm`: what `init` writes on a host with containerd and without systemd-resolved. */
export type DefaultsProfile = 'kubelet' | 'kubeadm';

/** The socket kubeadm takes when it finds no container runtime, and the one of containerd. */
const CRI_SOCKET = 'unix:///var/run/containerd/containerd.sock';

/** kubeadm's values with the defaults of its ClusterConfiguration; each leaf says what decides it. */
export function kubeadmProfile(): LayeredConfig {
  const { networking, certificatesDir } = applyClusterDefaults({});
  return layerClusterConfig({ clusterDNS: dnsIp(networking.serviceSubnet), dnsDomain: networking.dnsDomain, certificatesDir }, null);
}

/** The default configuration of a kubelet of a minor, printed as Go prints it: for `renderKubeletConfiguration`'s readers and for machines. */
export function profileDefaults(profile: DefaultsProfile, minor: Minor, catalogue: Catalogue): JsonObject {
  if (profile === 'kubelet') {
    const nothing = { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
    return encodeKubeletConfiguration(effectiveConfiguration(nothing, { minor, catalogue }), { minor, catalogue });
  }
  const config = encodeKubeletConfiguration(kubeadmProfile().config, { minor, catalogue });
  return catalogue.field('containerRuntimeEndpoint', minor) === null ? config : { ...config, containerRuntimeEndpoint: CRI_SOCKET };
}
