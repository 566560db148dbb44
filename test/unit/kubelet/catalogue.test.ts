import { describe, expect, it } from 'vitest';
import type { ObjectNode, TypeNode } from '../../../src/codec/type-node.ts';
import {
  type FieldType,
  formatMinor,
  isSupportedMinor,
  NEWEST_MINOR,
  OLDEST_MINOR,
  parseMinor,
} from '../../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';

const catalogue = await loadCatalogue();

describe('parseMinor', () => {
  it.each<[string, number | null]>([
    ['1.36', 36],
    ['v1.36.2', 36],
    ['v1.36.0-rc.1+abc', 36],
    ['1.28+', 28],
    ['v1.9.0', 9],
    [' v1.20.15\n', 20],
    ['1', null],
    ['2.0', null],
    ['v1', null],
    ['1.036', null],
    ['1.36.', null],
    ['1.36.2.3', null],
    ['stable-1', null],
    ['', null],
  ])('%j is %j', (version, minor) => {
    expect(parseMinor(version)).toBe(minor);
  });

  it('is formatted by formatMinor', () => {
    expect(formatMinor(36)).toBe('1.36');
  });
});

describe('loadCatalogue', () => {
  it('reads the data once', async () => {
    expect(await loadCatalogue()).toBe(catalogue);
  });

  it('ends with the newest minor', () => {
    const ends = [...catalogue.fields.values()].map(({ minors }) => minors[1]);
    expect(Math.max(...ends)).toBe(NEWEST_MINOR);
  });

  it('describes a field by minor', () => {
    expect(catalogue.field('memorySwap', 21)).toBeNull();
    expect(catalogue.field('memorySwap', 22)).toMatchObject({ type: 'object', printedWhenUnset: true, omitempty: true });
    expect(catalogue.field('logging.sanitization', 23)).not.toBeNull();
    expect(catalogue.field('logging.sanitization', 24)).toBeNull();
    expect(catalogue.field('resolvConf', 22)?.pointer).toBe(false);
    expect(catalogue.field('resolvConf', 23)?.pointer).toBe(true);
    expect(catalogue.field('logging.flushFrequency', 27)?.type).toBe('int64');
    expect(catalogue.field('logging.flushFrequency', 28)?.type).toBe('durationOrNanoseconds');
    expect(catalogue.field('memorySwap.swapBehavior', 29)?.values).toContain('UnlimitedSwap');
    expect(catalogue.field('memorySwap.swapBehavior', 30)?.values).toContain('NoSwap');
    expect(catalogue.field('maxPods', 36)).toMatchObject({
      default: 110,
      values: null,
      entry: { flag: 'max-pods', liveChange: expect.any(String) },
    });
    expect(catalogue.field('constructor', 36)).toBeNull();
  });

  it('describes a flag by minor', () => {
    expect(catalogue.flag('add_dir_header', 15)).toBeNull();
    expect(catalogue.flag('add_dir_header', 23)).toMatchObject({ deprecation: 'to-be-removed', field: null });
    expect(catalogue.flag('add_dir_header', 22)?.deprecation).toBeNull();
    expect(catalogue.flag('add_dir_header', 26)).toBeNull();
    expect(catalogue.flag('allowed-unsafe-sysctls', 15)?.field).toBeNull();
    expect(catalogue.flag('allowed-unsafe-sysctls', 16)?.field).toBe('allowedUnsafeSysctls');
    expect(catalogue.flag('allow-privileged', 10)?.default).toBe('false');
    expect(catalogue.flag('allow-privileged', 14)?.default).toBe('true');
    expect(catalogue.flag('cloud-provider', 28)?.deprecation).toBe('to-be-removed');
    expect(catalogue.flag('cloud-provider', 29)?.deprecation).toBeNull();
    expect(catalogue.flag('v', 36)?.entry.shorthand).toBe('v');
  });

  it('describes a gate by minor', () => {
    expect(catalogue.gate('NodeSwap', 21)).toBeNull();
    expect(catalogue.gate('APIListChunking', 28)).toMatchObject({ stage: 'BETA', default: true, locked: false });
    expect(catalogue.gate('APIListChunking', 29)).toMatchObject({ stage: 'GA', default: true, locked: true });
    expect(catalogue.gate('APIListChunking', 33)).toBeNull();
    expect(catalogue.gate('AuthorizeNodeWithSelectors', 34)?.dependencies).toEqual([]);
    expect(catalogue.gate('AuthorizeNodeWithSelectors', 35)?.dependencies).toEqual(['AuthorizeWithSelectors']);
  });

  it('has the changes of 1.37', () => {
    expect(catalogue.field('defaultPodSysctls', 36)).toBeNull();
    expect(catalogue.field('defaultPodSysctls', 37)).toMatchObject({ type: 'map<string,string>', default: null });
    expect([36, 37].map((minor) => catalogue.field('memoryThrottlingFactor', minor)?.default)).toEqual([0.9, null]);
    expect([36, 37].map((minor) => catalogue.gate('MemoryQoS', minor)?.default)).toEqual([false, true]);
    expect(catalogue.gate('DefaultPodSysctls', 37)).toMatchObject({ stage: 'ALPHA', default: false });
    expect(catalogue.gate('CompositePodGroup', 37)?.dependencies).toEqual(['GenericWorkload', 'TopologyAwareWorkloadScheduling']);
    expect(catalogue.gate('SidecarContainers', 37)).toBeNull();
    expect(catalogue.flag('storage-driver-db', 36)).not.toBeNull();
    expect(catalogue.flag('storage-driver-db', 37)).toBeNull();
    expect(catalogue.flag('housekeeping-interval', 37)).not.toBeNull();
  });

  it.each(Array.from({ length: NEWEST_MINOR - 34 }, (_, i) => 35 + i))(
    'has defaults of the gates of minor %i that meet all dependencies',
    (minor) => {
      const gates = [...catalogue.gates.keys()].map((name) => catalogue.gate(name, minor)).filter((gate) => gate !== null);
      const enabled = new Set(gates.filter((gate) => gate.default).map(({ name }) => name));
      const unmet = gates.filter(({ name, dependencies }) => enabled.has(name) && !dependencies.every((needs) => enabled.has(needs)));
      expect(gates.flatMap(({ dependencies }) => dependencies).length).toBeGreaterThan(30);
      expect(unmet).toEqual([]);
    },
  );

  it('covers all minors from the oldest to the newest', () => {
    expect([OLDEST_MINOR, NEWEST_MINOR].map(isSupportedMinor)).toEqual([true, true]);
    expect([OLDEST_MINOR - 1, NEWEST_MINOR + 1].map(isSupportedMinor)).toEqual([false, false]);
    const counts = [20, 21, 24, 28, 32, 36, 37].map(
      (minor) => [...catalogue.fields.keys()].filter((path) => catalogue.field(path, minor) !== null).length,
    );
    // The members of the Go structs of these minors, header included.
    expect(counts).toEqual([109, 115, 137, 146, 157, 164, 165]);
  });
});

describe('the type of KubeletConfiguration', () => {
  it('is built once for each minor', () => {
    expect(catalogue.configurationType(36)).toBe(catalogue.configurationType(36));
    expect(catalogue.configurationType(35)).not.toBe(catalogue.configurationType(36));
  });

  it.each([
    ['clusterDNS', 'list<string>'],
    ['enforceNodeAllocatable', 'list<string>'],
    ['tlsCurvePreferences', 'list<int32>'],
    ['featureGates', 'map<bool>'],
    ['evictionHard', 'map<string>'],
    ['staticPodURLHeader', 'map<list<string>>'],
    ['reservedMemory', 'list<{numaNode: int32, limits: map<quantity>}>'],
    ['memorySwap', '{swapBehavior: string}'],
    [
      'logging',
      '{format: string, flushFrequency: durationOrNanoseconds, verbosity: uint32, vmodule: list<{filePattern: string, verbosity: uint32}>, options: {text: {splitStream: bool, infoBufferSize: quantity}, json: {splitStream: bool, infoBufferSize: quantity}}}',
    ],
    ['cpuCFSQuotaPeriod', 'duration'],
    ['memoryThrottlingFactor', 'float'],
  ])('%s is a %s', (name, expected) => {
    expect(describeType(catalogue.configurationType(36).fields.get(name)?.type)).toBe(expected);
  });

  it('agrees with the catalogue on every field', () => {
    for (let minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
      const paths = pathsOf(catalogue.configurationType(minor));
      const known = [...catalogue.fields.keys()].filter((path) => catalogue.field(path, minor) !== null);
      expect(paths.toSorted()).toEqual(known.toSorted());
    }
  });

  it('lists the fields that Go always prints', () => {
    const printed = [...catalogue.fields.values()].filter(({ pointer, printedWhenUnset }) => pointer && printedWhenUnset);
    expect(printed).toEqual([]);
    const structs: readonly FieldType[] = ['object', 'duration', 'quantity', 'durationOrNanoseconds'];
    const unprinted = [...catalogue.fields.values()].filter(
      (field) => structs.includes(field.type) && !field.pointer && !field.printedWhenUnset,
    );
    expect(unprinted).toEqual([]);
  });
});

function describeType(type: TypeNode | undefined): string {
  if (type === undefined) return 'nothing';
  if (type.kind === 'list') return `list<${describeType(type.items)}>`;
  if (type.kind === 'map') return `map<${describeType(type.values)}>`;
  if (type.kind === 'object')
    return `{${[...type.fields.values()].map((field) => `${field.name}: ${describeType(field.type)}`).join(', ')}}`;
  return type.kind;
}

function pathsOf(type: ObjectNode): string[] {
  return [...type.fields.values()].flatMap((field) => {
    const inner = field.type.kind === 'list' ? field.type.items : field.type;
    return [field.path, ...(inner.kind === 'object' ? pathsOf(inner) : [])];
  });
}
