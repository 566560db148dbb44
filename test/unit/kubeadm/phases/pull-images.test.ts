import { describe, expect, it } from 'vitest';
import type { PullPolicy } from '../../../../src/kubeadm/config/model.ts';
import { parseImages, pullImages } from '../../../../src/kubeadm/phases/pull-images.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const LISTED = JSON.stringify({
  images: [
    { id: 'sha256:1', repoTags: ['registry.k8s.io/etcd:3.6.8-0'], repoDigests: ['registry.k8s.io/etcd@sha256:2'] },
    { id: 'sha256:3', repoTags: null, repoDigests: [] },
  ],
});
const IMAGES = ['registry.k8s.io/kube-apiserver:v1.36.2', 'registry.k8s.io/etcd:3.6.8-0'];

async function planWith(crictl: { readonly exitCode: number; readonly stdout?: string }, policy: PullPolicy = 'IfNotPresent') {
  const context = { host: fakeHost({ commands: { sh: crictl } }), cluster: null, clock: fakeClock(), reporter: recordingReporter() };
  return (await pullImages.inspect(context, { images: IMAGES, criSocket: 'unix:///run/x.sock', policy })).plan;
}

describe('preflight/pull-images', () => {
  it.each([
    ['IfNotPresent', IMAGES.slice(0, 1)],
    ['Always', IMAGES],
    ['Never', []],
  ] as const)('follows the pull policy %s', async (policy, expected) => {
    const { changes } = await planWith({ exitCode: 0, stdout: LISTED }, policy);
    expect(changes.map((change) => change.kind === 'pull-image' && change.image)).toEqual(expected);
  });

  it('pulls nothing when the check skipped: the preflight check ImagePull is ignored', async () => {
    const context = {
      host: fakeHost({ commands: { sh: { exitCode: 0, stdout: LISTED } } }),
      cluster: null,
      clock: fakeClock(),
      reporter: recordingReporter(),
    };
    const input = { images: IMAGES, criSocket: 'unix:///run/x.sock', policy: 'Always', ignored: true } as const;
    expect((await pullImages.inspect(context, input)).plan).toEqual({
      changes: [],
      noop: 'skipped: the preflight check ImagePull is ignored',
    });
  });

  it('leaves pulling to the kubelet when the runtime cannot be queried', async () => {
    expect(await planWith({ exitCode: 127 })).toMatchObject({ changes: [], noop: expect.stringContaining('kubelet pulls') });
    expect(await planWith({ exitCode: 0, stdout: 'no JSON' })).toMatchObject({
      changes: [],
      noop: expect.stringContaining('kubelet pulls'),
    });
  });

  it('parses names with tags and with digests', () => {
    expect(parseImages(LISTED)).toEqual(new Set(['registry.k8s.io/etcd:3.6.8-0', 'registry.k8s.io/etcd@sha256:2']));
    expect(parseImages('[]')).toEqual(new Set());
    expect(parseImages('')).toEqual(new Set());
    expect(parseImages('registry.k8s.io/etcd:3.6.8-0\nregistry.k8s.io/etcd@sha256:2\nsha256:3\n')).toEqual(
      new Set(['registry.k8s.io/etcd:3.6.8-0', 'registry.k8s.io/etcd@sha256:2', 'sha256:3']),
    );
  });

  it('matches an image of Docker Hub by its full name', async () => {
    const host = fakeHost({ commands: { sh: { exitCode: 0, stdout: 'docker.io/library/pause:3\ndocker.io/me/etcd:1\n' } } });
    const context = { host, cluster: null, clock: fakeClock(), reporter: recordingReporter() };
    const input = { images: ['pause:3', 'me/etcd:1'], criSocket: 'unix:///run/x.sock', policy: 'IfNotPresent' } as const;
    expect((await pullImages.inspect(context, input)).plan).toEqual({ changes: [], noop: 'the images exist on the host' });
  });
});
