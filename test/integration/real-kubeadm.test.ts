import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { corednsObjects } from '../../src/core/addons/coredns.ts';
import { kubeProxyObjects } from '../../src/core/addons/kube-proxy.ts';
import { manifestFile, staticPodNames } from '../../src/core/control-plane/manifests.ts';
import { type ControlPlaneNode, caDirectoriesIn } from '../../src/core/control-plane/model.ts';
import { controlPlaneNode } from '../support/control-plane-node.ts';
import { initInputs } from '../support/kubeadm-inputs.ts';
import { findRealBinaries } from '../support/real-apiserver.ts';
import { kubeadmDryRun, kubeadmVersion, writeInput } from '../support/real-kubeadm.ts';
import { requirement } from '../support/requirement.ts';

const binaries = findRealBinaries();
const kubeadm = typeof binaries === 'string' ? null : binaries.kubeadm;

function whyNot(): string | null {
  if (typeof binaries === 'string') return binaries;
  if (kubeadm === null) return 'there is no kubeadm beside kube-apiserver';
  const version = kubeadmVersion(kubeadm);
  return version.startsWith('v1.36.') ? null : `kubeadm is ${version}, not 1.36`;
}

const RUNS = Number(process.env.KUBELETADM_RUNS ?? 20);
const ADDON = /^(?:system:)?coredns$|^kube-dns$|^kube-proxy$|^kubeadm:node-proxier$/;

describe.skipIf(requirement('what the real kubeadm makes of made-up configurations', whyNot()))('any configuration', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-inputs-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('becomes the static pods and addons that kubeadm makes of it', { timeout: 10_000 + RUNS * 3_000 }, () => {
    let [compared, refused] = [0, 0];
    const property = fc.property(initInputs, (input) => {
      const config = writeInput(directory, input);
      const theirs = kubeadmDryRun(kubeadm as string, config);
      const ours = () => controlPlaneNode(readFileSync(config, 'utf8'), { caDirectories: caDirectoriesIn(existsSync) });
      if (theirs.exitCode !== 0) {
        expect(() => [manifestsOf(ours()), addonsOf(ours())], theirs.log).toThrow();
        refused++;
        return;
      }
      expect(manifestsOf(ours())).toEqual(theirs.manifests);
      const addons = theirs.apiActions.flatMap(({ object }) => object ?? []).filter(({ metadata }) => ADDON.test(metadata.name));
      expect(addonsOf(ours())).toEqual(addons);
      compared += Object.keys(theirs.manifests).length + addons.length;
    });
    fc.assert(property, { numRuns: RUNS, seed: 1362, endOnFailure: process.env.KUBELETADM_RUNS === undefined });
    const version = kubeadmVersion(kubeadm as string);
    console.log(
      `${RUNS} configurations, ${refused} refused by both, ${compared} files and objects, all equal to those of kubeadm ${version}`,
    );
  });
});

function manifestsOf(node: ControlPlaneNode): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    staticPodNames(node).map((name) => {
      const { path, content } = manifestFile(node, name);
      return [path.slice(path.lastIndexOf('/') + 1), content];
    }),
  );
}

function addonsOf(node: ControlPlaneNode): readonly unknown[] {
  const { configMap, daemonSet, serviceAccount, rbac } = kubeProxyObjects(node).objects;
  return [
    ...(node.cluster.dns.disabled ? [] : Object.values(corednsObjects(node))),
    ...(node.cluster.proxy.disabled ? [] : [configMap, daemonSet, serviceAccount, ...rbac]),
  ];
}
