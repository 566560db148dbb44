import { describe, expect, it } from 'vitest';
import { hostsToApply, readPlan, savePlan } from '../../../src/fleet/plan/saved-plan.ts';
import { KUBERNETES_KEY_FINGERPRINT } from '../../../src/host/operation/install-model.ts';
import { hostOf, resolve, resolved } from './support.ts';

const SUM = 'ab'.repeat(32);

describe('the prerequisites of a node', () => {
  it('are empty without a declaration', () => {
    expect(hostOf(resolved('hosts: [{name: n1}]\n'), 'n1').preparation).toBeUndefined();
  });

  it('resolve no variables of an unused setting', () => {
    const fleet = resolved(`baseline: {packages: {version: "{{ kubelet }}", extra: ["{{ agent }}"]}, binaries: {source: "{{ mirror }}"}}
groups: [{name: packages, install: packages, variables: {kubelet: "1.36", agent: agent-36}}]
hosts: [{name: n1}, {name: n2, groups: [packages]}]
`);
    expect(hostOf(fleet, 'n1').preparation).toBeUndefined();
    expect(hostOf(fleet, 'n2').preparation?.install).toMatchObject({ version: '1.36', extra: ['agent-36'] });
  });

  it('are merged from all layers', () => {
    const fleet = resolved(`kubernetesVersion: "1.36"
baseline:
  install: packages
  swap: off
  kernelModules: [overlay, br_netfilter]
  sysctls: {net.ipv4.ip_forward: 1, vm.max_map_count: 262144}
groups:
  - name: old
    packages: {version: v1.35.4, runtime: containerd.io}
    sysctls: {vm.max_map_count: 65530}
  - name: bare
    install: none
    swap: keep
    kernelModules: []
hosts:
  - name: n1
  - name: n2
    groups: [old]
    packages: {extra: [socat], repository: "https://mirror.example.com/{{ name }}/"}
  - name: n3
    groups: [bare]
`);
    const kubernetes = {
      name: 'kubernetes',
      url: 'https://pkgs.k8s.io/core:/stable:/v1.36/',
      suite: '/',
      components: [],
      key: null,
      keyFingerprints: [KUBERNETES_KEY_FINGERPRINT],
    };
    expect(hostOf(fleet, 'n1').preparation).toEqual({
      swap: 'off',
      kernelModules: ['overlay', 'br_netfilter'],
      sysctls: { 'net.ipv4.ip_forward': '1', 'vm.max_map_count': '262144' },
      install: { kind: 'packages', version: '1.36', runtime: 'containerd', extra: [], repositories: [kubernetes] },
    });
    expect(hostOf(fleet, 'n2').preparation).toMatchObject({
      sysctls: { 'net.ipv4.ip_forward': '1', 'vm.max_map_count': '65530' },
      install: {
        version: '1.35.4',
        runtime: 'containerd.io',
        extra: ['socat'],
        repositories: [{ url: 'https://mirror.example.com/n2/' }],
      },
    });
    expect(hostOf(fleet, 'n3').preparation).toEqual({
      swap: null,
      kernelModules: [],
      sysctls: { 'net.ipv4.ip_forward': '1', 'vm.max_map_count': '262144' },
      install: null,
    });
    expect(hostOf(fleet, 'n2').origins().get('packages.version')).toMatchObject({ layer: 'group old', position: { line: 11 } });
  });

  it('write files, of the last layer that declares each', () => {
    const fleet = resolved(`baseline:
  variables: {mirror: m.example.com}
  files: {/etc/a.conf: {content: "to {{ mirror }}"}, /etc/b.conf: {content: b, mode: "0600"}}
hosts: [{name: n1, files: {/etc/b.conf: {content: own}}}]
`);
    expect(hostOf(fleet, 'n1').preparation?.files).toEqual({
      '/etc/a.conf': { content: 'to m.example.com', mode: 0o644 },
      '/etc/b.conf': { content: 'own', mode: 0o644 },
    });
  });

  it.each(['etc/a', '/etc/../a', '/etc/a/', '/', '/etc//a', '/var/lib/kubelet/config.yaml', '/etc/kubernetes/admin.conf'])(
    'refuse the file %s',
    (path) => {
      const { problems } = resolve(`hosts: [{name: n1, files: {"${path}": {content: a}}}]\n`);
      expect(problems).toEqual([expect.stringMatching(/is not the absolute path of a file|kubeletadm itself writes/)]);
    },
  );

  it('may be files with checksums', () => {
    const fleet = resolved(`hosts:
  - name: n1
    install: binaries
    binaries:
      source: ./bin/
      files:
        - {name: kubelet, sha256: "${SUM.toUpperCase()}"}
        - {name: crictl, source: "https://example.com/v1", sha256: "${SUM}", path: /opt/bin/crictl, mode: "750"}
        - {name: containerd-2.1.0.tar.gz, sha256: "${SUM}", extractTo: /usr/local}
      units: [containerd]
`);
    expect(hostOf(fleet, 'n1').preparation?.install).toEqual({
      kind: 'binaries',
      files: [
        { name: 'kubelet', source: './bin/kubelet', sha256: SUM, mode: 0o755, path: '/usr/bin/kubelet', isArchive: false },
        { name: 'crictl', source: 'https://example.com/v1/crictl', sha256: SUM, mode: 0o750, path: '/opt/bin/crictl', isArchive: false },
        {
          name: 'containerd-2.1.0.tar.gz',
          source: './bin/containerd-2.1.0.tar.gz',
          sha256: SUM,
          mode: 0o600,
          path: '/usr/local',
          isArchive: true,
        },
      ],
      units: ['containerd'],
    });
  });

  it('are kept in a saved plan', () => {
    const host = hostOf(resolved('hosts: [{name: n1, install: packages, packages: {version: "1.36"}, sysctls: {a.b: x}}]\n'), 'n1');
    const context = {
      fleet: { file: 'f', directory: '/', name: null },
      cluster: { kubeconfig: null, context: null, configuration: null, endpoint: null, caFile: null, caCertHashes: [], token: null },
      server: 'https://x',
      takeOver: false,
      ignorePreflightErrors: [],
    };
    const plan = { name: 'n1', phases: [] };
    const saved = savePlan(context, [[host, { status: 'pending', plan, problems: [] }]], { createdAt: new Date(0), validForMs: 1 });
    const [task] = hostsToApply(readPlan(JSON.stringify(saved), 'plan.json'));
    expect(task?.host.preparation).toEqual(host.preparation);
  });

  it('reads the role controlPlane as control-plane', () => {
    expect(resolved('hosts: [{name: a, role: controlPlane}, {name: b, role: control-plane}]\n').hosts.map(({ role }) => role)).toEqual([
      'control-plane',
      'control-plane',
    ]);
  });
});

describe('invalid prerequisites', () => {
  it('names the host and the parameter of a value with a line break', () => {
    const body = `baseline:
  variables: {ports: "1024 65000"}
  sysctls: {net.ipv4.ip_local_port_range: "{{ ports }}"}
hosts:
  - {name: n1, variables: {ports: "1024\\n65000"}}
  - {name: n2}
  - {name: n3, sysctls: {vm.swappiness: "1\\n2"}}
`;
    const advice = 'Write the value on one line, and also the values of its variables. [FLEET_INVALID_VALUE]';
    const what = 'contains a line break or a NUL character';
    expect(resolve(body).problems).toEqual([
      `fleet.yaml:5:43 baseline.sysctls["net.ipv4.ip_local_port_range"]: the value of net.ipv4.ip_local_port_range for host n1 ${what}: "1024\\n65000". ${advice}`,
      `fleet.yaml:9:41 hosts[2].sysctls["vm.swappiness"]: the value of vm.swappiness for host n3 ${what}: "1\\n2". ${advice}`,
    ]);
  });

  it.each([
    ['a repository', 'repository: "https://x/\\0"', 'packages.repository: "https://x/\\u0000" is not a valid repository URL'],
    [
      'a component from a variable',
      'repositories: [{name: x, url: "https://x/", components: ["{{ c }}"], keyFingerprints: [DE15B14486CD377B9E876E1A234654DA9A296436]}]',
      'packages.repositories[0].components[0]: "a\\u0000b" is not valid in an apt source line. Use a value without spaces, brackets and #',
    ],
  ])('rejects control characters in %s', (_, text, problem) => {
    const body = host(`variables: {c: "a\\0b"}, install: packages, packages: {version: "1.36", ${text}}`);
    expect(resolve(body).problems.join()).toContain(problem);
  });

  it('names the host of a flag that systemd cannot read back', () => {
    const body = `baseline: {kubeletExtraArgs: [{name: pod-manifest-path, value: "{{ dir }}"}]}
hosts: [{name: n1, variables: {dir: "/a\\nb"}}, {name: n2, variables: {dir: /c}}]
`;
    expect(resolve(body).problems.join()).toContain(
      'kubeletExtraArgs[0].name: kubelet flag pod-manifest-path of host n1: systemd cannot pass this value to the kubelet',
    );
  });

  it('rejects a runtime socket with a line break', () => {
    expect(resolve(host('criSocket: "unix:///run/x\\n.sock"')).problems.join()).toContain('is not the URL of a unix socket');
  });

  const host = (body: string): string => `hosts: [{name: n1, ${body}}]\n`;
  const packages = (body: string): string => host(`install: packages, packages: {version: "1.36", ${body}}`);
  const files = (body: string): string => host(`install: binaries, binaries: {${body}}`);

  it.each([
    [
      'no version',
      host('install: packages'),
      'install: install: packages needs the version of the kubelet. Set kubernetesVersion: "1.36" at the top of the file',
    ],
    [
      'an invalid version',
      host('install: packages, packages: {version: latest}'),
      'packages.version: "latest" is not a valid kubelet package version. Use a version such as "1.36" or "1.36.2"',
    ],
    ['an unknown method', host('install: pakages'), 'install: "pakages" is not one of packages, binaries and none. Did you mean packages?'],
    [
      'an invalid URL',
      packages('repository: pkgs.k8s.io'),
      'packages.repository: "pkgs.k8s.io" is not a valid repository URL. Use the form https://HOST/PATH',
    ],
    [
      'a URL with an apt option',
      packages('repository: "https://x/ [trusted=yes]"'),
      'packages.repository: "https://x/ [trusted=yes]" is not a valid repository URL. Use the form https://HOST/PATH',
    ],
    [
      'a password',
      packages('repository: "https://me:secret@mirror/"'),
      'packages.repository: a URL with a password is not allowed in a fleet file. Use a mirror that needs no authentication',
    ],
    [
      'a key over http',
      packages('repository: "http://mirror/"'),
      'packages.repository: the key of a repository cannot be downloaded over http. Use an https URL, or save the key to a file and set key to the path of the file',
    ],
    [
      'a short key id',
      packages('keyFingerprints: [9A296436]'),
      'packages.keyFingerprints[0]: not a key fingerprint. Write all 40 or 64 hexadecimal digits, in quotation marks, as gpg --show-keys FILE prints them',
    ],
    ['an option for a package', packages('runtime: "--reinstall"'), 'packages.runtime: "--reinstall" is not a valid package name'],
    [
      'a repository without pins',
      packages('repositories: [{name: x, url: "https://x/", keyFingerprints: []}]'),
      'packages.repositories[0].keyFingerprints: a repository needs keyFingerprints. Set keyFingerprints to the fingerprints that the vendor of the repository publishes',
    ],
    [
      'a reserved repository name',
      packages('repositories: [{name: kubernetes, url: "https://x/", keyFingerprints: [DE15B14486CD377B9E876E1A234654DA9A296436]}]'),
      'packages.repositories[0].name: "kubernetes" is not a valid repository name. Use letters, digits and dashes; kubernetes is reserved',
    ],
    [
      'no files',
      host('install: binaries'),
      'install: install: binaries needs a list of files. List the files in binaries.files, each with name and sha256',
    ],
    [
      'no source',
      files(`files: [{name: kubelet, sha256: "${SUM}"}]`),
      'binaries.files[0].name: kubelet has no source. Set binaries.source to a local directory or a URL',
    ],
    [
      'no checksum',
      files('source: x, files: [{name: kubelet}]'),
      'binaries.files[0].name: kubelet has no sha256. Use the published checksum of the file, or run sha256sum on it',
    ],
    [
      'half a checksum',
      files('source: x, files: [{name: kubelet, sha256: "abc"}]'),
      'binaries.files[0].sha256: not a valid SHA-256. Quote the 64 hexadecimal digits printed by sha256sum',
    ],
    [
      'a path with ..',
      files(`source: x, files: [{name: kubelet, sha256: "${SUM}", path: /usr/../bin/x}]`),
      'binaries.files[0].path: "/usr/../bin/x" is not an absolute path. Use a path that begins with /',
    ],
    [
      'a mode without quotes',
      files(`source: x, files: [{name: kubelet, sha256: "${SUM}", mode: 755}]`),
      'binaries.files[0].mode: 755 is not a file mode. Quote the mode: "0755"',
    ],
    [
      'one path twice',
      files(`source: x, files: [{name: a, path: /b, sha256: "${SUM}"}, {name: c, path: /b, sha256: "${SUM}"}]`),
      'binaries.files[1].name: two files have the path /b',
    ],
    [
      'a file that is not an archive',
      files(`source: x, files: [{name: a.zip, extractTo: /b, sha256: "${SUM}"}]`),
      'binaries.files[0].extractTo: a.zip is not a tar archive. Use a file whose name ends in .tar, .tar.gz or .tar.xz',
    ],
    [
      'an invalid kernel module',
      host('kernelModules: ["overlay; reboot"]'),
      'kernelModules[0]: "overlay; reboot" is not a valid kernel module name',
    ],
    [
      'an invalid kernel parameter',
      host('sysctls: {ip_forward: 1}'),
      'sysctls.ip_forward: "ip_forward" is not a valid kernel parameter name. Use the form of sysctl -a: net.ipv4.ip_forward',
    ],
    [
      'a kernel parameter with a boolean',
      host('sysctls: {net.ipv4.ip_forward: true}'),
      'sysctls["net.ipv4.ip_forward"]: expected a number or a string, found true',
    ],
  ])('%s', (_, body, message) => {
    const { problems } = resolve(body);
    expect(problems.map((problem) => problem.replace(/^fleet\.yaml:3:[0-9]+ hosts\[0\]\./, '').replace(/\.? \[\w+\]$/, ''))).toEqual([
      message,
    ]);
    expect(problems[0]).not.toContain('secret@');
  });
});
