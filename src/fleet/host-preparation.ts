import { trimTrailing } from '../base/text/trim-trailing.ts';
import { quoteValue } from '../codec/document-problems.ts';
import type { PathSegment } from '../codec/field-path.ts';
import { MODULE_NAME, SYSCTL_NAME } from '../host/install/kernel.ts';
import {
  type BinaryInstall,
  type HostPreparation,
  type InstalledFile,
  KUBERNETES_KEY_FINGERPRINT,
  kubernetesRepositoryUrl,
  type PackageInstall,
  type PackageRepository,
  type ProxySetting,
} from '../host/install/model.ts';
import { minorOf, PACKAGE_VERSION } from '../host/install/plan-packages.ts';
import { invalidFleetValue } from './fleet-problems.ts';
import { hostProxy } from './host-proxy.ts';
import type { Layer } from './layer.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import type { Scope } from './scope.ts';

interface Context {
  readonly scope: Scope;
  readonly findings: ProblemCollector;
  /** Kubernetes version of the fleet file. */
  readonly kubernetesVersion: string | null;
}

const MEMBERS = ['install', 'kernelModules', 'sysctls', 'swap', 'proxy'] as const;

/**
 * Resolves the preparation of a host from its layers. `packages` and `sysctls` are merged by member;
 * otherwise the last layer wins.
 * @param layers lowest first
 */
export function hostPreparation(layers: readonly Layer[], context: Context): HostPreparation | undefined {
  if (!layers.some(({ written }) => MEMBERS.some((member) => written[member] !== undefined))) return undefined;
  const reader = new PreparationReader(layers, context);
  const preparation: HostPreparation = {
    swap: reader.last('swap')?.value === 'off' ? 'off' : null,
    kernelModules: reader.kernelModules(),
    sysctls: reader.sysctls(),
    install: reader.install(),
    ...optionalProxy(hostProxy(layers, context)),
  };
  return Object.values(preparation).every((value) => value === null) ? undefined : preparation;
}

function optionalProxy(proxy: ProxySetting | undefined): Pick<HostPreparation, 'proxy'> {
  return proxy === undefined ? {} : { proxy };
}

interface Reported<T> {
  readonly value: T;
  readonly place: (...steps: readonly PathSegment[]) => SettingLocation;
}

type Written<K extends keyof FleetLayer> = NonNullable<FleetLayer[K]>;
type Packages = Written<'packages'>;
type WrittenFile = NonNullable<Written<'binaries'>['files']>[number];

class PreparationReader {
  readonly #layers: readonly Layer[];
  readonly #context: Context;

  constructor(layers: readonly Layer[], context: Context) {
    this.#layers = layers;
    this.#context = context;
  }

  last<K extends keyof FleetLayer>(member: K): Reported<Written<K>> | null {
    const layer = this.#layers.findLast(({ written }) => written[member] !== undefined);
    if (layer === undefined) return null;
    return { value: layer.written[member] as Written<K>, place: (...steps) => layer.place([member, ...steps]) };
  }

  kernelModules(): readonly string[] | null {
    const reported = this.last('kernelModules');
    if (reported === null) return null;
    return reported.value.map((written, i) => {
      const name = this.#text(written, reported.place(i));
      if (!MODULE_NAME.test(name)) this.#wrong(`${JSON.stringify(name)} is not a valid kernel module name`, reported.place(i));
      return name;
    });
  }

  sysctls(): Readonly<Record<string, string>> | null {
    if (this.last('sysctls') === null) return null;
    const values = new Map<string, string>();
    for (const layer of this.#layers) {
      for (const [name, written] of Object.entries(layer.written.sysctls ?? {})) {
        const place = layer.place(['sysctls', name]);
        if (!SYSCTL_NAME.test(name))
          this.#wrong(
            `${JSON.stringify(name)} is not a valid kernel parameter name`,
            place,
            'Use the form of sysctl -a: net.ipv4.ip_forward',
          );
        values.set(name, this.#sysctlValue(name, this.#text(written, place), place));
      }
    }
    return Object.fromEntries(values);
  }

  #sysctlValue(name: string, value: string, place: SettingLocation): string {
    if (!/[\n\0]/.test(value)) return value;
    const { scope, findings } = this.#context;
    findings.addShared(`sysctl ${name}`, place, (others) => {
      const hosts = `host ${scope.host}${others === 0 ? '' : ` and ${others} more`}`;
      const message = `the value of ${name} for ${hosts} contains a line break or a NUL character: ${quoteValue(value)}`;
      return invalidFleetValue(message, 'Write the value on one line, and also the values of its variables');
    });
    return value;
  }

  install(): PackageInstall | BinaryInstall | null {
    const reported = this.last('install');
    switch (reported?.value) {
      case 'packages':
        return this.#packages(reported.place());
      case 'binaries':
        return this.#binaries(reported.place());
      default:
        return null;
    }
  }

  #packages(asked: SettingLocation): PackageInstall | null {
    const version = this.#packageVersion(asked);
    const runtime = this.#member('runtime');
    const [repository, key] = [this.#member('repository'), this.#member('key')];
    const runtimeName = runtime === null ? 'containerd' : this.#packageName(this.#text(runtime.value, runtime.place()), runtime.place());
    const extra = this.#member('extra');
    const pins = this.#member('keyFingerprints');
    if (version === null) return null;
    const url = repository === null ? kubernetesRepositoryUrl(minorOf(version)) : this.#url(repository);
    const kubernetes: PackageRepository = {
      name: 'kubernetes',
      url,
      suite: '/',
      components: [],
      key: key === null ? null : this.#key(key),
      keyFingerprints: pins?.value ?? [KUBERNETES_KEY_FINGERPRINT],
    };
    if (kubernetes.key === null && url.startsWith('http:')) this.#needsKey(repository?.place() ?? asked);
    return {
      kind: 'packages',
      version,
      runtime: runtimeName === 'none' ? null : runtimeName,
      extra: (extra?.value ?? []).map((name, i) => this.#packageName(this.#text(name, extra?.place(i) ?? asked), extra?.place(i) ?? asked)),
      repositories: [kubernetes, ...this.#repositories()],
    };
  }

  /** The last value of one member of `packages`. */
  #member<K extends keyof Packages>(member: K): Reported<NonNullable<Packages[K]>> | null {
    const layer = this.#layers.findLast(({ written }) => written.packages?.[member] !== undefined);
    if (layer === undefined) return null;
    const value = layer.written.packages?.[member] as NonNullable<Packages[K]>;
    return { value, place: (...steps) => layer.place(['packages', member, ...steps]) };
  }

  #packageVersion(asked: SettingLocation): string | null {
    const reported = this.#member('version');
    const version = reported === null ? this.#context.kubernetesVersion : this.#text(reported.value, reported.place());
    if (version === null) {
      this.#wrong('install: packages needs the version of the kubelet', asked, 'Set kubernetesVersion: "1.36" at the top of the file');
      return null;
    }
    const plain = version.replace(/^v/, '');
    if (PACKAGE_VERSION.test(plain)) return plain;
    this.#wrong(
      `${JSON.stringify(version)} is not a valid kubelet package version`,
      reported?.place() ?? asked,
      'Use a version such as "1.36" or "1.36.2"',
    );
    return null;
  }

  #packageName(name: string, place: SettingLocation): string {
    if (!/^[a-z0-9][a-z0-9+._-]*$/i.test(name)) this.#wrong(`${JSON.stringify(name)} is not a valid package name`, place);
    return name;
  }

  #repositories(): readonly PackageRepository[] {
    const reported = this.#member('repositories');
    if (reported === null) return [];
    return reported.value.map((written, i): PackageRepository => {
      const part = <K extends keyof typeof written>(member: K) => ({
        value: written[member] as string,
        place: () => reported.place(i, member),
      });
      const { name, suite = '/', components = [], key, keyFingerprints = [] } = written;
      if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) || name === 'kubernetes')
        this.#wrong(
          `${JSON.stringify(name)} is not a valid repository name`,
          reported.place(i, 'name'),
          'Use letters, digits and dashes; kubernetes is reserved',
        );
      const repository: PackageRepository = {
        name,
        url: this.#url(part('url')),
        suite: this.#word(this.#text(suite, reported.place(i, 'suite')), reported.place(i, 'suite')),
        components: components.map((each, n) =>
          this.#word(this.#text(each, reported.place(i, 'components', n)), reported.place(i, 'components', n)),
        ),
        key: key === undefined ? null : this.#key(part('key')),
        keyFingerprints,
      };
      if (keyFingerprints.length === 0)
        this.#wrong(
          'a repository needs keyFingerprints',
          reported.place(i, 'keyFingerprints'),
          'Set keyFingerprints to the fingerprints that the vendor of the repository publishes',
        );
      if (repository.key === null && repository.url.startsWith('http:')) this.#needsKey(reported.place(i, 'url'));
      return repository;
    });
  }

  #word(text: string, place: SettingLocation): string {
    if (/[\s\p{Cc}[\]#]|^$/u.test(text))
      this.#wrong(`${JSON.stringify(text)} is not valid in an apt source line`, place, 'Use a value without spaces, brackets and #');
    return text;
  }

  #needsKey(place: SettingLocation): void {
    this.#wrong(
      'the key of a repository cannot be downloaded over http',
      place,
      'Use an https URL, or save the key to a file and set key to the path of the file',
    );
  }

  #url(reported: { readonly value: string; place(): SettingLocation }): string {
    const place = reported.place();
    const text = this.#text(reported.value, place);
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null || !/^https?:$/.test(url.protocol) || /[\s\p{Cc}[\]#?]/u.test(text))
      this.#wrong(`${JSON.stringify(text)} is not a valid repository URL`, place, 'Use the form https://HOST/PATH');
    else if (url.username !== '' || url.password !== '')
      this.#wrong('a URL with a password is not allowed in a fleet file', place, 'Use a mirror that needs no authentication');
    return text.endsWith('/') ? text : `${text}/`;
  }

  /** Resolves a path or an https URL. */
  #key(reported: { readonly value: string; place(): SettingLocation }): string {
    const key = this.#text(reported.value, reported.place());
    if (key.startsWith('http://')) this.#needsKey(reported.place());
    return key;
  }

  #binaries(asked: SettingLocation): BinaryInstall | null {
    const reported = this.last('binaries');
    if (reported === null || reported.value.files === undefined || reported.value.files.length === 0) {
      this.#wrong('install: binaries needs a list of files', asked, 'List the files in binaries.files, each with name and sha256');
      return null;
    }
    const { source, files, units = [] } = reported.value;
    const from = source === undefined ? null : this.#text(source, reported.place('source'));
    const paths = new Map<string, string>();
    return {
      kind: 'binaries',
      files: files.map((file, i) => this.#file(file, { from, paths, place: (...steps) => reported.place('files', i, ...steps) })),
      units: units.map((unit, i) => {
        if (!/^[A-Za-z0-9:_.@-]+$/.test(unit) || unit.startsWith('-'))
          this.#wrong(`${JSON.stringify(unit)} is not a valid unit name`, reported.place('units', i));
        return unit;
      }),
    };
  }

  #file(
    written: WrittenFile,
    {
      from,
      paths,
      place,
    }: { readonly from: string | null; readonly paths: Map<string, string>; readonly place: Reported<unknown>['place'] },
  ): InstalledFile {
    const { name, sha256 = '', mode = 0o755, extractTo } = written;
    if (!/^[A-Za-z0-9][\w.+@-]*$/.test(name)) this.#wrong(`${JSON.stringify(name)} is not a valid file name`, place('name'));
    if (sha256 !== '' && !/^[0-9a-fA-F]{64}$/.test(sha256))
      this.#wrong('not a valid SHA-256', place('sha256'), 'Quote the 64 hexadecimal digits printed by sha256sum');
    if (sha256 === '')
      this.#wrong(`${name} has no sha256`, place('name'), 'Use the published checksum of the file, or run sha256sum on it');
    const base = written.source === undefined ? from : this.#text(written.source, place('source'));
    if (base === null) this.#wrong(`${name} has no source`, place('name'), 'Set binaries.source to a local directory or a URL');
    if (written.path !== undefined && extractTo !== undefined)
      this.#wrong('path (for files) and extractTo (for archives) are mutually exclusive', place('path'), 'Remove one of them');
    const member = extractTo === undefined ? 'path' : 'extractTo';
    const path = this.#text(extractTo ?? written.path ?? `/usr/bin/${name}`, place(member));
    if (!/^\/[^\0\n]+$/.test(path) || path.split('/').some((part) => part === '.' || part === '..'))
      this.#wrong(`${JSON.stringify(path)} is not an absolute path`, place(member), 'Use a path that begins with /');
    const id = extractTo === undefined ? path : `archive ${name}`;
    if (paths.has(id))
      this.#wrong(extractTo === undefined ? `two files have the path ${path}` : `the archive ${name} is listed twice`, place('name'));
    paths.set(id, name);
    if (extractTo !== undefined && !/\.(?:tar|tgz|txz|tar\.gz|tar\.xz)$/.test(name))
      this.#wrong(`${name} is not a tar archive`, place('extractTo'), 'Use a file whose name ends in .tar, .tar.gz or .tar.xz');
    return {
      name,
      source: `${trimTrailing(base ?? '', '/')}/${name}`,
      sha256: sha256.toLowerCase(),
      mode: extractTo === undefined ? mode : 0o600,
      path,
      isArchive: extractTo !== undefined,
    };
  }

  #text(text: string, place: SettingLocation): string {
    return this.#context.scope.text(text, () => place) ?? text;
  }

  #wrong(message: string, place: SettingLocation, hint?: string): void {
    this.#context.findings.addShared(message, place, () => invalidFleetValue(message, hint));
  }
}
