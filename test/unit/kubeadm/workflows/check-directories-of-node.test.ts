import { beforeEach, describe, expect, it } from 'vitest';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import { host, join, refusalsOfJoin, useJoinWorld } from '../../../support/join-world.ts';

useJoinWorld();

const directory = (mode = 0o755): FileFact => ({ type: 'directory', mode, owner: 'root:root' });
const OTHERS = 'KUBELET_UNSAFE_DIRECTORY: /srv/victim contains file1, which are not logs of pods: the kubelet would delete them';

describe('podLogsDir with other content is refused', () => {
  beforeEach(() => {
    host.files.set('/srv/victim', directory());
    host.files.set('/srv/victim/file1', { type: 'file', mode: 0o644, owner: 'root:root', content: 'x' });
  });

  it('on a host without a node', async () => {
    expect(await refusalsOfJoin('podLogsDir: /srv/victim')).toEqual([OTHERS]);
    expect(host.performed).toEqual([]);
  });

  it('on a node, also where every impact is permitted', async () => {
    await join('maxPods: 110');
    const before = host.performed.length;
    expect(await refusalsOfJoin('maxPods: 110\npodLogsDir: /srv/victim')).toEqual([OTHERS]);
    expect(host.performed.slice(before)).toEqual([]);
  });

  it('but not if it is in use', async () => {
    host.files.delete('/srv/victim/file1');
    await join('podLogsDir: /srv/victim');
    host.files.set('/srv/victim/note', { type: 'file', mode: 0o644, owner: 'root:root', content: 'x' });
    expect(await refusalsOfJoin('podLogsDir: /srv/victim\nmaxPods: 111')).toEqual([]);
  });
});

it('volumePluginDir that others can write is refused', async () => {
  host.files.set('/opt', directory(0o777));
  expect(await refusalsOfJoin('volumePluginDir: /opt/plug')).toEqual([
    'KUBELET_UNSAFE_DIRECTORY: /opt (root:root, mode 777) can be written by others than root, and the kubelet would run the programs in /opt/plug as root',
  ]);
});
