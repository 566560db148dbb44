import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import { checkDirectories } from '../../../../src/kubelet/workload/check-directories.ts';
import { type FakeCommand, fakeHost } from '../../../support/fake-host.ts';

const DEFAULTS = { podLogsDir: '/var/log/pods', volumePluginDir: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/' };
const UID = '0f8f0c0e-52b3-4c1f-9d1a-6a8c5d5b7a10';
const HASH = '0123456789abcdef0123456789abcdef';
const directory = (mode = 0o755, owner = 'root:root', target?: string): FileFact => ({
  type: 'directory',
  mode,
  owner,
  ...(target === undefined ? {} : { target }),
});

interface Given {
  readonly after: JsonObject;
  readonly files?: Readonly<Record<string, string | FileFact>>;
  readonly find?: FakeCommand;
  readonly hidden?: readonly string[];
}

async function issues({ after, files = {}, find = { stdout: '' }, hidden = [] }: Given): Promise<readonly string[]> {
  const host = fakeHost({ files: { '/': directory(), ...files }, commands: { find } });
  const found = await checkDirectories(host, { before: DEFAULTS, after: { ...DEFAULTS, ...after }, hidden });
  return found.map(({ path, why }) => `${path}: ${why}`);
}

describe('a directory of logs of pods', () => {
  it.each<[string, Given]>([
    ['does not exist', { after: { podLogsDir: '/data/pods' } }],
    ['is empty', { after: { podLogsDir: '/data/pods' }, files: { '/data/pods': directory() } }],
    [
      'has logs of pods',
      {
        after: { podLogsDir: '/data/pods' },
        files: {
          '/data/pods': directory(),
          [`/data/pods/kube-system_web-1_${UID}/c/0.log`]: 'x',
          [`/data/pods/kube-system_etcd-node-1.example_${HASH}/c/0.log`]: 'x',
        },
      },
    ],
    ['is unchanged', { after: {}, files: { '/var/log/pods': directory(), '/var/log/pods/other': 'x' } }],
  ])('is used if it %s', async (_, given) => {
    expect(await issues(given)).toEqual([]);
  });

  it.each<[string, Given, RegExp]>([
    [
      'has other content',
      {
        after: { podLogsDir: '/srv/victim' },
        files: { '/srv/victim': directory(), '/srv/victim/database/data': 'x', '/srv/victim/file1': 'x' },
      },
      /podLogsDir: \/srv\/victim contains database, file1, which are not logs of pods: the kubelet would delete them/,
    ],
    ['has hidden files', { after: { podLogsDir: '/a' }, files: { '/a': directory(), '/a/.snapshot': 'x' } }, /\.snapshot/],
    [
      'has names that end like logs',
      { after: { podLogsDir: '/a' }, files: { '/a': directory(), [`/a/x_${UID}`]: 'x' } },
      /not logs of pods/,
    ],
    ['is one of the system', { after: { podLogsDir: '/var/lib/kubelet/pods' } }, /directory of the system/],
    [
      'is a link to one of the system',
      { after: { podLogsDir: '/data/logs' }, files: { '/data/logs': directory(0o755, 'root:root', '/etc') } },
      /is a link to \/etc: .*directory of the system/,
    ],
    ['is a file', { after: { podLogsDir: '/a' }, files: { '/a': 'x' } }, /is not a directory/],
    ['is not visible', { after: { podLogsDir: '/home/a/logs' }, hidden: ['/home/'] }, /cannot be checked/],
  ])('is refused if it %s', async (_, given, why) => {
    expect(await issues(given)).toEqual([expect.stringMatching(why)]);
  });
});

describe('a directory of volume plugins', () => {
  const opt = { '/opt': directory(), '/opt/plug': directory() };
  it.each<[string, Given]>([
    ['is of root', { after: { volumePluginDir: '/opt/plug' }, files: opt }],
    ['does not exist below directories of root', { after: { volumePluginDir: '/opt/plug' }, files: { '/opt': directory() } }],
    ['is written with a slash', { after: { volumePluginDir: `${DEFAULTS.volumePluginDir}/` } }],
  ])('is used if it %s', async (_, given) => {
    expect(await issues(given)).toEqual([]);
  });

  it.each<[string, Given, RegExp]>([
    [
      'is writable',
      { after: { volumePluginDir: '/opt/plug' }, files: { ...opt, '/opt/plug': directory(0o777) } },
      /\/opt\/plug \(root:root, mode 777\)/,
    ],
    ['is of another user', { after: { volumePluginDir: '/opt/plug' }, files: { ...opt, '/opt/plug': directory(0o755, 'a:a') } }, /a:a/],
    ['is below a writable one', { after: { volumePluginDir: '/opt/plug' }, files: { ...opt, '/opt': directory(0o1777) } }, /\/opt \(/],
    [
      'could be created by others',
      { after: { volumePluginDir: '/opt/plug' }, files: { '/opt': directory(0o775, 'root:adm') } },
      /\/opt \(/,
    ],
    [
      'is a link to a writable one',
      {
        after: { volumePluginDir: '/opt/plug' },
        files: { ...opt, '/opt/plug': directory(0o755, 'root:root', '/srv/a'), '/srv': directory(0o777), '/srv/a': directory() },
      },
      /\/srv \(/,
    ],
    ['is /tmp', { after: { volumePluginDir: '/tmp/plug' } }, /written by every user/],
    [
      'has programs of others',
      { after: { volumePluginDir: '/opt/plug' }, files: opt, find: { stdout: '/opt/plug/x~drv/drv\n' } },
      /\/opt\/plug\/x~drv\/drv can be written by others/,
    ],
    ['cannot be read', { after: { volumePluginDir: '/opt/plug' }, files: opt, find: { exitCode: 1 } }, /cannot be read/],
  ])('is refused if it %s', async (_, given, why) => {
    expect(await issues(given)).toEqual([expect.stringMatching(why)]);
  });
});
