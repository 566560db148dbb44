import { describe, expect, it } from 'vitest';
import { fullImageName } from '../../../../src/host/cri/runtime-commands.ts';

const DIGEST = `sha256:${'0'.repeat(64)}`;

/** Expected: `NormalizeNamed`, `TagNameOnly` and containerd's `ParseDockerRef` of github.com/distribution/reference. */
describe('the full name of an image', () => {
  it.each([
    ['busybox', 'docker.io/library/busybox:latest'],
    ['busybox:1.36', 'docker.io/library/busybox:1.36'],
    ['library/busybox', 'docker.io/library/busybox:latest'],
    ['docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['index.docker.io/library/busybox:1', 'docker.io/library/busybox:1'],
    ['flannel/flannel:v0.27.4', 'docker.io/flannel/flannel:v0.27.4'],
    ['localhost/tool', 'localhost/tool:latest'],
    ['registry:5000/tool', 'registry:5000/tool:latest'],
    ['Registry/tool:1', 'Registry/tool:1'],
    ['registry.k8s.io/pause:3.10.2', 'registry.k8s.io/pause:3.10.2'],
    [`busybox@${DIGEST}`, `docker.io/library/busybox@${DIGEST}`],
    [`quay.io/a/b:v1@${DIGEST}`, `quay.io/a/b@${DIGEST}`],
    [`registry:5000/b@${DIGEST}`, `registry:5000/b@${DIGEST}`],
  ])('of %s is %s', (name, full) => expect(fullImageName(name)).toBe(full));
});
