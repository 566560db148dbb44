import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { certificateExpiry } from '../../../../src/dynamic/agent/certificate-expiry.ts';
import { clientCertificateFileKubeconfig } from '../../../../src/kube/kubeconfig-render.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { createCertificateChain } from '../../../support/certificate-chain.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { virtualClock } from '../../../support/virtual-clock.ts';

const catalogue = await loadCatalogue();
const CONF = '/etc/kubernetes/kubelet.conf';
const CLIENT = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const SERVING = '/var/lib/kubelet/pki/kubelet-server-current.pem';

function hostWith(caPem: string, files: Readonly<Record<string, string>>) {
  const config = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nserverTLSBootstrap: true\n';
  const kubeconfig = { clusterName: 'c', server: 'https://api:6443', caPem, user: 'node', certificateFile: CLIENT, keyFile: CLIENT };
  return fakeHost({
    files: { '/etc/kubelet.yaml': config, [CONF]: clientCertificateFileKubeconfig(kubeconfig), ...files },
    commands: {
      sh: ([, , script = '']) =>
        script.includes('/cmdline')
          ? { stdout: '712\nKubernetes v1.36.2\n/opt/bin/kubelet\0--config=/etc/kubelet.yaml\0' }
          : { exitCode: 127 },
      kubelet: { exitCode: 127 },
      id: { stdout: '0\n' },
      uname: { stdout: 'n1\n' },
    },
    units: { kubelet: fakeUnit({ dropInPaths: [], activeState: 'active' }) },
  });
}

it('is that of the certificates in the files of the kubelet, as far as they can be read, and is read again after a minute', async () => {
  const { rootPem, certPem, keyPem } = await createCertificateChain();
  const seconds = Date.parse(new X509Certificate(certPem).validTo) / 1000;
  const host = hostWith(rootPem, { [CLIENT]: certPem + keyPem });
  const clock = virtualClock();
  const expiry = certificateExpiry({ host, kubeconfig: CONF, catalogue, clock, signal: new AbortController().signal });
  expect(await expiry()).toEqual({ client: seconds });
  const put = (path: string, content: string) => host.files.set(path, { type: 'file', mode: 0o600, owner: 'root:root', content });
  put(SERVING, certPem + keyPem);
  put(CLIENT, 'damaged');
  expect(await expiry()).toEqual({ client: seconds });
  await clock.sleep(60_000);
  expect(await expiry()).toEqual({ serving: seconds });
});
