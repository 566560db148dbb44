import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { effectiveConfiguration } from '../../kubelet/defaults/effective-configuration.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { encodeKubeletConfiguration } from '../../kubelet/documents/encode.ts';
import type { LayeredConfig } from '../../kubelet/layers/layers.ts';
import { applyClusterDefaults } from '../config/defaults.ts';
import { dnsIp } from '../config/dns-ip.ts';
import { mergeClusterKubeletConfig } from './cluster-config.ts';

/**
 * `kubelet`: values in force for unset fields. `kubeadm`: values written by `init` on a host with containerd
 * and without systemd-resolved.
 */
export type DefaultsProfile = 'kubelet' | 'kubeadm';

/** kubeadm's default without a container runtime, which is also the socket of containerd. */
const CRI_SOCKET = 'unix:///var/run/containerd/containerd.sock';

/** kubeadm's values with the defaults of its ClusterConfiguration; each leaf names its source. */
export function kubeadmProfile(): LayeredConfig {
  const { networking, certificatesDir } = applyClusterDefaults({});
  return mergeClusterKubeletConfig({ clusterDNS: dnsIp(networking.serviceSubnet), dnsDomain: networking.dnsDomain, certificatesDir }, null);
}

/** The default configuration of a kubelet of a minor version, printed as by Go. */
export function profileDefaults(profile: DefaultsProfile, minor: Minor, catalogue: Catalogue): JsonObject {
  if (profile === 'kubelet') {
    const nothing = { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
    return encodeKubeletConfiguration(effectiveConfiguration(nothing, { minor, catalogue }), { minor, catalogue });
  }
  const config = encodeKubeletConfiguration(kubeadmProfile().config, { minor, catalogue });
  return catalogue.field('containerRuntimeEndpoint', minor) === null ? config : { ...config, containerRuntimeEndpoint: CRI_SOCKET };
}
