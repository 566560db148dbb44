import { describe, expect, it } from 'vitest';
import {
  parseContainerdConfig,
  parseCrictlRuntimeConfig,
  parseCrioConfig,
  runtimeCgroupDriver,
  runtimeConfigSupport,
} from '../../../../src/kubelet/facts/cgroup-driver.ts';
import { commandFailure, commandOutput, parseFact } from '../../../support/answers.ts';
import { fixture } from '../../../support/fixture.ts';

const containerd = (name: string): string => fixture(import.meta.url, `../../host/facts/fixtures/containerd/${name}.toml`);
const crio = (name: string): string => fixture(import.meta.url, `../../host/facts/fixtures/crio/${name}.toml`);

const V2 = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc';

describe('parseContainerdConfig', () => {
  it.each([
    ['1.6 default', containerd('dump-1.6.20-default'), 'cgroupfs'],
    ['1.6 with SystemdCgroup', containerd('dump-1.6.20-systemd'), 'systemd'],
    ['1.6 whose default runtime is another one of runc’s kind', containerd('dump-1.6.20-default-runtime-nvidia'), 'systemd'],
    ['1.6 with its CRI plugin disabled', containerd('dump-1.6.20-cri-disabled'), null],
    ['2.0 default', containerd('dump-2.0-default'), 'cgroupfs'],
    ['2.0 with SystemdCgroup', containerd('dump-2.0-systemd'), 'systemd'],
    ['2.0 whose default runtime has no cgroup driver', containerd('dump-2.0-default-runtime-kata'), 'systemd'],
    ['format 1 with the old field', containerd('config-1.2-format-1'), 'systemd'],
    ['no options section', `${V2}]\n  runtime_type = "io.containerd.runc.v2"\n`, 'cgroupfs'],
    [
      'SystemdCgroup of a runtime that is not the default',
      `${V2}]\n${V2.replace('runc', 'other')}.options]\nSystemdCgroup = true\n`,
      'cgroupfs',
    ],
    ['commented out', `${V2}.options]\n  # SystemdCgroup = true\n`, 'cgroupfs'],
    ['a section after the options', `${V2}.options]\n  Root = ""\n[plugins.x]\n  SystemdCgroup = true\n`, 'cgroupfs'],
    [
      'a quoted name with a dot',
      `default_runtime_name = "runc.x"\n${V2.replace('runc', '"runc.x"')}.options] # mine\nSystemdCgroup = true\n`,
      'systemd',
    ],
    ['only runtimes of other kinds', `${V2}]\n  runtime_type = "io.containerd.runsc.v1"\n`, null],
    ['nothing', '', null],
    ['not TOML', 'containerd: failed to load TOML from config.toml', null],
  ])('%s', (_, toml, expected) => {
    expect(parseContainerdConfig(toml)).toBe(expected);
  });
});

describe('parseCrioConfig', () => {
  it.each([
    ['1.30 default, commented out', crio('config-1.30-default'), 'systemd'],
    ['1.30 running with cgroupfs', crio('status-config-1.30-cgroupfs'), 'cgroupfs'],
    ['1.22 spelled out', crio('config-1.22-systemd'), 'systemd'],
    ['nothing', '', null],
    ['an unknown manager', '[crio.runtime]\ncgroup_manager = "other"\n', null],
  ])('%s', (_, toml, expected) => {
    expect(parseCrioConfig(toml)).toBe(expected);
  });
});

describe('parseCrictlRuntimeConfig', () => {
  it.each([
    ['cgroup driver:   SYSTEMD\n', 'systemd'],
    ['cgroup driver:   CGROUPFS\n', 'cgroupfs'],
    ['{"linux":{"cgroupDriver":"SYSTEMD"}}\n', 'systemd'],
    ['', null],
    ['cgroup driver:   7\n', null],
  ])('%j', (output, expected) => {
    expect(parseCrictlRuntimeConfig(output)).toBe(expected);
  });
});

describe('runtimeCgroupDriver', () => {
  const CONTAINERD = 'unix:///var/run/containerd/containerd.sock';
  const CRIO = 'unix:///var/run/crio/crio.sock';
  const CRI_DOCKERD = 'unix:///var/run/cri-dockerd.sock';
  const SYSTEMD = commandOutput('cgroup driver:   SYSTEMD\n');

  it.each([
    [
      'CRI before the runtime’s own files',
      CONTAINERD,
      { 'crictl runtime-config': SYSTEMD, 'containerd config dump': commandOutput(containerd('dump-1.6.20-default')) },
      'systemd',
      'crictl runtime-config',
    ],
    [
      'the dump when crictl fails',
      CONTAINERD,
      {
        'crictl runtime-config': commandFailure(1, 'unknown method RuntimeConfig'),
        'containerd config dump': commandOutput(containerd('dump-1.6.20-default')),
      },
      'cgroupfs',
      'containerd config dump',
    ],
    [
      'the running configuration of CRI-O before its files',
      CRIO,
      {
        'crio status config': commandOutput(crio('status-config-1.30-cgroupfs')),
        'crio config': commandOutput(crio('config-1.30-default')),
      },
      'cgroupfs',
      'crio status config',
    ],
    ['CRI-O’s files when it does not run', CRIO, { 'crio config': commandOutput(crio('config-1.30-default')) }, 'systemd', 'crio config'],
    ['docker', CRI_DOCKERD, { 'docker info': commandOutput('systemd\n') }, 'systemd', 'docker info'],
  ] as const)('%s', (_, socket, given, driver, source) => {
    expect(parseFact(runtimeCgroupDriver(socket), given)).toMatchObject({ driver, source });
  });

  it.each([
    [CONTAINERD, { 'crictl runtime-config': SYSTEMD }, 'SystemdCgroup = false under the runc runtime'],
    [CRIO, { 'crio config': commandOutput(crio('status-config-1.30-cgroupfs')) }, 'cgroup_manager = "systemd" under [crio.runtime]'],
    [CRI_DOCKERD, { 'docker info': commandOutput('WARNING: No swap limit support\ncgroupfs\n') }, '"native.cgroupdriver=systemd"'],
  ])('names for %s the setting to change', (socket, given, change) => {
    expect(parseFact(runtimeCgroupDriver(socket), given)?.change).toContain(change);
  });

  it.each([
    ['nothing is installed', {}],
    ['docker has no daemon', { 'docker info': commandOutput('\n') }],
  ])('is null when %s', (_, given) => {
    expect(parseFact(runtimeCgroupDriver(CRI_DOCKERD), given)).toBeNull();
  });

  it('runs only the tools of that runtime', () => {
    expect(Object.keys(runtimeCgroupDriver(CRIO).queries)).toEqual(['crictl runtime-config', 'crio status config', 'crio config']);
  });
});

describe('runtimeConfigSupport', () => {
  const CONTAINERD = 'unix:///var/run/containerd/containerd.sock';
  const CRIO = 'unix:///var/run/crio/crio.sock';
  const UNIMPLEMENTED = commandOutput('HTTP/2 200 \r\n\r\ngrpc-status: 12\r\ngrpc-message: Methode unbekannt\r\ncurl-exit: 0\n');
  const SERVED = commandOutput('HTTP/2 200 \r\n\r\ngrpc-status: 0\r\ngrpc-message: \r\ncurl-exit: 0\n');
  const OLD_CRICTL = commandOutput("curl: (1) Unsupported protocol\ncurl-exit: 1\nNo help topic for 'runtime-config'\n");

  it.each([
    ['a runtime with RuntimeConfig', CONTAINERD, { RuntimeConfig: SERVED }, true],
    [
      'a runtime without RuntimeConfig',
      CONTAINERD,
      { RuntimeConfig: UNIMPLEMENTED, 'containerd config dump': commandOutput(containerd('dump-2.0-default')) },
      false,
    ],
    ['containerd 1.6 without crictl', CONTAINERD, { 'containerd config dump': commandOutput(containerd('dump-1.6.20-default')) }, false],
    [
      'containerd 2.0 with an old crictl',
      CONTAINERD,
      { RuntimeConfig: OLD_CRICTL, 'containerd config dump': commandOutput(containerd('dump-2.0-default')) },
      true,
    ],
    ['an unresponsive containerd', CONTAINERD, {}, null],
    ['CRI-O without crictl', CRIO, {}, null],
    ['CRI-O that has not', CRIO, { RuntimeConfig: UNIMPLEMENTED }, false],
  ] as const)('%s', (_, socket, given, expected) => {
    expect(parseFact(runtimeConfigSupport(socket), given)).toBe(expected);
  });
});
