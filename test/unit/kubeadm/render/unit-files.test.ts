import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import { UNIT_DIRECTORIES, UNIT_FILE_PATHS } from '../../../../src/host/systemd/kubelet-unit-paths.ts';
import { designUnitFiles, kubeletConfigFile, type UnitFilesInput } from '../../../../src/kubeadm/render/unit-files.ts';
import { textFile } from '../../../support/answers.ts';

const ETC = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const USR = '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf';
const UNIT = '/usr/lib/systemd/system/kubelet.service';
const DEV_NULL: FileFact = { type: 'other', mode: 0o666, owner: 'root:root', target: '/dev/null' };

function dropIn(extraArgsFile: string, kubelet = '/usr/bin/kubelet'): string {
  return `# Note: This dropin only works with kubeadm
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-${extraArgsFile}
ExecStart=
ExecStart=${kubelet} $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;
}

const DEB = dropIn('/etc/default/kubelet');
const RPM = dropIn('/etc/sysconfig/kubelet');

function design(files: Readonly<Record<string, string | FileFact>>, change: Partial<UnitFilesInput> = {}) {
  const found = new Map(
    UNIT_FILE_PATHS.map((path) => {
      const given = files[path];
      return [path, given === undefined ? null : typeof given === 'string' ? textFile(given) : given] as const;
    }),
  );
  for (const path of Object.keys(files)) if (!found.has(path)) throw new Error(`unused file ${path}`);
  return designUnitFiles({ found, unit: null, packageFamily: 'deb', renderDropIn: dropIn, renderUnit: () => 'the unit\n', ...change });
}

describe('designUnitFiles', () => {
  it('writes both files into /etc on a bare host', () => {
    expect(design({})).toEqual({
      files: [
        { path: '/etc/systemd/system/kubelet.service', content: 'the unit\n', mode: 0o644, owner: 'root:root' },
        { path: ETC, content: DEB, mode: 0o644, owner: 'root:root' },
      ],
      warnings: [],
      refusal: null,
      extraArgsFile: '/etc/default/kubelet',
      extraArgs: [],
    });
  });

  it.each([
    ['deb', '/etc/default/kubelet'],
    ['rpm', '/etc/sysconfig/kubelet'],
    [null, '/etc/default/kubelet'],
  ] as const)('reads the extra arguments of a %s system from %s', (packageFamily, file) => {
    const { extraArgsFile, files } = design({}, { packageFamily });
    expect(extraArgsFile).toBe(file);
    expect(files[1]?.content).toBe(dropIn(file));
  });

  it.each([
    ['the files of the packages', { [UNIT]: 'u', [USR]: DEB }, []],
    ['the drop-in of the packages with other comments', { [UNIT]: 'u', [USR]: `; custom\n${DEB}` }, []],
    ['additional files with the same content in /etc', { [UNIT]: 'u', [USR]: DEB, [ETC]: DEB }, []],
    ['a kubelet at another path', { [UNIT]: 'u', [ETC]: dropIn('/etc/default/kubelet', '/opt/bin/kubelet') }, []],
    [
      '/lib as a link to /usr/lib',
      { [UNIT]: 'u', '/lib/systemd/system/kubelet.service': 'u', [USR]: DEB, '/lib/systemd/system/kubelet.service.d/10-kubeadm.conf': DEB },
      [],
    ],
    ['a drop-in with additional settings', { [UNIT]: 'u', [ETC]: `${DEB}Restart=always\n` }, ['DROPIN_DIFFERS']],
    [
      'an equivalent drop-in on one line',
      {
        [UNIT]: 'u',
        [ETC]:
          '[Service]\nEnvironmentFile=/var/lib/kubelet/kubeadm-flags.env\nExecStart=\nExecStart=/usr/bin/kubelet --bootstrap-kubeconfig=/b --kubeconfig=/etc/kubernetes/kubelet.conf --config /var/lib/kubelet/config.yaml ${KUBELET_KUBEADM_ARGS}\n',
      },
      ['DROPIN_DIFFERS'],
    ],
    ['a drop-in that masks another', { [UNIT]: 'u', [ETC]: DEB, [USR]: RPM }, ['DROPIN_MASKED']],
  ])('keeps %s', (_, files, codes) => {
    const { files: written, warnings, refusal } = design(files);
    expect(written).toEqual([]);
    expect(warnings.map(({ code }) => code)).toEqual(codes);
    expect(refusal).toBeNull();
  });

  it.each([
    ['--config', DEB.replace('--config=/var/lib/kubelet/config.yaml', '--v=2'), '--config=/var/lib/kubelet/config.yaml'],
    ['--config of another file', DEB.replace('/var/lib/kubelet/config.yaml', '/etc/kubelet.yaml'), '--config=/var/lib/kubelet/config.yaml'],
    ['--kubeconfig', DEB.replace(' --kubeconfig=/etc/kubernetes/kubelet.conf', ''), '--kubeconfig=/etc/kubernetes/kubelet.conf'],
    ['--bootstrap-kubeconfig', DEB.replace('--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf', ''), '--bootstrap-kubeconfig'],
    [
      'kubeadm-flags.env',
      DEB.replace('EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n', ''),
      'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env',
    ],
    ['a list reset after it', `${DEB}EnvironmentFile=\n`, 'EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env'],
    ['$KUBELET_KUBEADM_ARGS', DEB.replace(' $KUBELET_KUBEADM_ARGS', ''), '$KUBELET_KUBEADM_ARGS in ExecStart'],
  ])('replaces a drop-in without %s', (_, content, lacks) => {
    for (const [place, verb] of [
      [ETC, 'is rewritten'],
      [USR, 'is written and overrides the file'],
    ] as const) {
      const { files, warnings } = design({ [UNIT]: 'u', [place]: content });
      expect(files).toMatchObject([{ path: ETC }]);
      expect(warnings).toEqual([{ code: 'DROPIN_REPLACED', message: expect.stringContaining(lacks) }]);
      expect(warnings[0]?.message).toContain(verb);
    }
  });

  it('keeps the extra arguments file of the replaced drop-in', () => {
    const { files, extraArgsFile } = design({ [UNIT]: 'u', [USR]: RPM.replace('$KUBELET_KUBEADM_ARGS ', '') });
    expect(extraArgsFile).toBe('/etc/sysconfig/kubelet');
    expect(files[0]?.content).toBe(RPM);
  });

  it.each([
    ['KUBELET_EXTRA_ARGS=\n', []],
    ['KUBELET_EXTRA_ARGS="--v=4 --node-labels=\'a=b c\'"\n', ['--v=4', '--node-labels=a=b c']],
    ['# nothing\n', []],
  ])('reads %j', (content, extraArgs) => {
    expect(
      design({ [USR]: RPM, [UNIT]: 'u', '/etc/sysconfig/kubelet': content, '/etc/default/kubelet': 'KUBELET_EXTRA_ARGS=--v=9\n' })
        .extraArgs,
    ).toEqual(extraArgs);
  });

  it.each<[string, Record<string, string | FileFact>, Partial<UnitFilesInput>, RegExp]>([
    [
      'a unit linked to /dev/null',
      { '/etc/systemd/system/kubelet.service': DEV_NULL, [UNIT]: 'u', [USR]: DEB },
      {},
      /kubelet\.service is masked/,
    ],
    ['an empty unit', { '/etc/systemd/system/kubelet.service': '', [USR]: DEB }, {}, /kubelet\.service is masked/],
    ['a drop-in linked to /dev/null', { [UNIT]: 'u', [ETC]: DEV_NULL, [USR]: DEB }, {}, /10-kubeadm\.conf is masked/],
    ['an empty drop-in', { [UNIT]: 'u', [ETC]: '' }, {}, /10-kubeadm\.conf is masked/],
    [
      'a unit that systemd reports as masked',
      { [UNIT]: 'u', [USR]: DEB },
      { unit: { unitFileState: 'masked' } as UnitFilesInput['unit'] },
      /kubelet\.service is masked/,
    ],
  ])('refuses to start %s', (_, files, change, refusal) => {
    const result = design(files, change);
    expect(result.refusal).toMatch(refusal);
    expect(result.files).toEqual([]);
  });

  it('lets only root read a KubeletConfiguration with HTTP headers', () => {
    const modeOf = (config: JsonObject): number => kubeletConfigFile('/var/lib/kubelet/config.yaml', { config, text: '' }).mode;
    expect(modeOf({ maxPods: 5, staticPodURL: 'https://pods.example' })).toBe(0o644);
    expect(modeOf({ maxPods: 5, staticPodURLHeader: { X: ['a'] } })).toBe(0o600);
    expect(modeOf({ staticPodURL: 'https://user:word@pods.example/' })).toBe(0o600);
    expect(modeOf({ staticPodURL: "https://user:it's@pods.example/" })).toBe(0o600);
    expect(modeOf({ staticPodURL: 'https://pods.example/a@b' })).toBe(0o644);
    expect(modeOf({ clusterDomain: 'x, staticPodURLHeader: {}' })).toBe(0o644);
  });

  it('reads the directories of systemd, /etc first', () => {
    expect(UNIT_DIRECTORIES[0]).toBe('/etc/systemd/system');
    expect(UNIT_FILE_PATHS).toHaveLength(2 * UNIT_DIRECTORIES.length + 2);
  });
});
