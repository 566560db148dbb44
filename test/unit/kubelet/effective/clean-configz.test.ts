import { describe, expect, it } from 'vitest';
import { parseSource } from '../../../../src/codec/source.ts';
import { encodeYaml } from '../../../../src/codec/yaml-encode.ts';
import { payloadDocument } from '../../../../src/dynamic/agent/overlay.ts';
import { preparePayload } from '../../../../src/dynamic/agent/prepare-payload.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { cleanConfigz } from '../../../../src/kubelet/diff/clean-configz.ts';
import { decodeKubeletConfiguration } from '../../../../src/kubelet/documents/decode.ts';

const catalogue = await loadCatalogue();
const minor = 36;
/** The configuration written by kubeadm 1.36 on a host with systemd-resolved and containerd. */
const LOCAL = `apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: KubeletConfiguration
resolvConf: /run/systemd/resolve/resolv.conf
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`;

function configz() {
  const [document] = parseSource(LOCAL, 'config.yaml').documents;
  if (document === undefined) throw new Error('no document');
  return effectiveConfiguration(decodeKubeletConfiguration(document, { minor, catalogue }).value, { minor, catalogue });
}

/** The result of a payload in an agent with the default policy, on the node of `LOCAL`. */
function prepare(kubelet: string) {
  return preparePayload(
    { identity: { namespace: 'n', name: 'a', kubeletConfigKey: 'kubelet', uid: 'u', resourceVersion: '1' }, data: { kubelet } },
    {
      name: 'node-1',
      group: null,
      directory: '/agent',
      minor,
      catalogue,
      local: { path: '/var/lib/kubelet/config.yaml', text: LOCAL },
      flags: [],
      dropIns: [],
      running: null,
      cgroupVersion: 2,
    },
    { allow: 'new-pods-only', isDrained: false },
  );
}

describe('the configuration of a node that kubeadm wrote', () => {
  it.each([true, false])(
    'changes nothing on its own node as an overlay, and passes the default policy (without defaults: %s)',
    (withoutDefaults) => {
      const { shared } = cleanConfigz(configz(), { minor, catalogue, withoutDefaults });
      expect(prepare(encodeYaml(payloadDocument('overlay', shared)))).toMatchObject({ refusal: null, candidate: { changes: [] } });
      const edited = prepare(encodeYaml(payloadDocument('overlay', { ...shared, eventRecordQPS: 0 })));
      expect(edited).toMatchObject({ refusal: null, candidate: { changes: ['eventRecordQPS from 50 to 0'] } });
    },
  );

  it('would change node-specific fields as a whole configuration', () => {
    const { shared } = cleanConfigz(configz(), { minor, catalogue, withoutDefaults: true });
    expect(prepare(encodeYaml(payloadDocument('configuration', shared))).refusal).toMatchObject({
      code: 'NOT_ALLOWED',
      cause: expect.stringContaining('containerRuntimeEndpoint'),
    });
  });

  it('has no deprecated fields', () => {
    const { shared } = cleanConfigz(configz(), { minor, catalogue, withoutDefaults: false });
    expect(Object.keys(shared)).toContain('maxPods');
    for (const name of ['iptablesDropBit', 'iptablesMasqueradeBit', 'streamingConnectionIdleTimeout'])
      expect(Object.keys(shared)).not.toContain(name);
  });
});
