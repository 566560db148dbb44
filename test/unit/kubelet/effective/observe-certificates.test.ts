import { expect, it } from 'vitest';
import { observeCertificates } from '../../../../src/kubelet/effective/observe-certificates.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';

const UNIT = '/etc/systemd/system/kubelet.service';
const CA = '/etc/kubernetes/pki/ca.crt';
const caFile = (path: string): string => `authentication: {x509: {clientCAFile: ${path}}}\n`;

it.each([
  ['the CA of the file that the kubelet reads', '', { '/etc/own.yaml': caFile('/etc/own-ca.crt') }, false],
  ['not the CA of a file that the kubelet does not read', '', { '/etc/own.yaml': caFile(CA) }, true],
  ['a drop-in file', '--config-dir=/etc/own.d', { '/etc/own.yaml': caFile(CA), '/etc/own.d/1.conf': caFile('/etc/own-ca.crt') }, false],
  ['the flag', '--client-ca-file=/etc/own-ca.crt', { '/etc/own.yaml': caFile(CA) }, false],
  ['the CA of kubeadm without a setting', '', { '/etc/own.yaml': 'maxPods: 50\n' }, true],
])('honours %s', async (_, flag, files, isChecked) => {
  const host = fakeHost({
    files: {
      [UNIT]: `[Service]\nExecStart=/opt/bin/kubelet --config=/etc/own.yaml ${flag}\n`,
      '/var/lib/kubelet/config.yaml': caFile(isChecked ? '/etc/old-ca.crt' : CA),
      [CA]: 'pem',
      ...files,
    },
    commands: { sh: { exitCode: 3 }, date: { stdout: '1\n' } },
    units: { kubelet: fakeUnit({ fragmentPath: UNIT }) },
  });
  const { certificates } = await observeCertificates(host);
  expect(certificates.some(({ path }) => path === CA)).toBe(isChecked);
});
