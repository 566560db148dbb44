import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HAS_SCHEDULER, importControlPlaneImages } from '../support/control-plane-images.ts';
import { INSTALLERS, runInstaller } from '../support/installer-lines.ts';
import { installProgram, KUBEADM_DROP_IN, type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;
const missing =
  whyNoKubelet() ??
  whyNoLabHosts() ??
  (kubeadm === null ? 'kubeadm not found (KUBEBUILDER_ASSETS)' : HAS_SCHEDULER ? null : 'kube-scheduler not found (KUBEBUILDER_ASSETS)');

/** The command lines of installers, from the first init to reset, by kubeadm and by kubeletadm under the name kubeadm. */
describe.skipIf(requirement('command lines of installers on hosts', missing))('the command lines of an installer', () => {
  let lab: LabHosts;
  beforeAll(() => {
    if (typeof binaries === 'string' || kubeadm === null) return;
    lab = startLabHosts(2, binaries.kubelet, 'control-plane');
    importControlPlaneImages(lab, binaries);
    execFileSync(process.execPath, [join(ROOT, 'scripts/build.mjs')], { cwd: ROOT, stdio: 'ignore' });
    for (const host of lab.names) {
      lab.run(host, KUBEADM_DROP_IN);
      lab.run(host, 'mkdir -p /opt/kubeadm /opt/kubeletadm');
      lab.put(host, '/opt/kubeadm/kubeadm', readFileSync(kubeadm));
      lab.put(host, '/usr/local/bin/node', readFileSync(process.execPath));
      installProgram(lab, host, join(ROOT, 'dist'));
      lab.run(host, 'ln -sf /usr/local/lib/kubeletadm/kubeletadm.mjs /opt/kubeletadm/kubeadm');
    }
  }, 900_000);
  afterAll(() => lab?.close(), 120_000);

  it.each(Object.entries(INSTALLERS))(
    'of %s have the exit codes and the output of kubeadm',
    (_, installer) => {
      let shown = '';
      const run = (program: string) => runInstaller(lab, installer, `/opt/${program}/kubeadm`, (text) => (shown = text));
      const expected = run('kubeadm');
      expect(
        expected.filter(({ code }) => code !== 0),
        shown,
      ).toEqual([]);
      expect(run('kubeletadm'), shown).toEqual(expected);
    },
    1_200_000,
  );
});
