import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { imageRisks, nameOf } from '../../../../src/kubelet/workload/image-risks.ts';
import { readRiskFacts } from '../../../../src/kubelet/workload/risk-facts.ts';
import type { RiskPod } from '../../../../src/kubelet/workload/risk-input.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { NO_RISK_FACTS } from '../../../support/no-risk-facts.ts';

const catalogue = await loadCatalogue();
const DEFAULTS = { imagePullCredentialsVerificationPolicy: 'NeverVerifyPreloadedImages' };
const POD: RiskPod = {
  uid: 'u',
  name: 'default/web',
  isStatic: false,
  phase: 'Running',
  reason: '',
  message: '',
  isReady: true,
  isTerminating: false,
  createdAt: '2030-01-01T00:00:00Z',
  requests: { cpuMillis: 0, memoryBytes: 0, ephemeralBytes: 0 },
  waiting: [],
  images: [{ image: 'registry.local:5000/web:1', pullPolicy: 'IfNotPresent' }],
};

interface Given {
  readonly after: JsonObject;
  readonly before?: JsonObject;
  readonly images?: RiskPod['images'];
  /** Null: unknown. */
  readonly records?: readonly string[] | null;
}

const risksOf = ({ after, before = DEFAULTS, images = POD.images ?? [], records = [] }: Given) =>
  imageRisks({
    nodeName: 'n',
    minor: 36,
    catalogue,
    before,
    after,
    pods: [{ ...POD, images }],
    node: null,
    host: records === null ? null : { ...NO_RISK_FACTS, pulledImages: records },
    dnsServices: null,
  }).map(({ severity, why }) => `${severity}: ${why}`);

const always = { imagePullCredentialsVerificationPolicy: 'AlwaysVerify' };
const listed = (...patterns: string[]): JsonObject => ({
  imagePullCredentialsVerificationPolicy: 'NeverVerifyAllowlistedImages',
  preloadedImagesVerificationAllowlist: patterns,
});

describe('images of running pods under a stricter policy', () => {
  it.each<[string, Given, RegExp]>([
    [
      'are pulled again',
      { after: always },
      /^loss: .*AlwaysVerify.* registry\.local:5000\/web:1, which it did not pull: .*default\/web would pull the images again/,
    ],
    [
      'cannot start with the pull policy Never',
      { after: always, images: [{ image: 'web', pullPolicy: 'Never' }] },
      /^loss: .*default\/web could not start \(imagePullPolicy Never\)/,
    ],
    ['are not in the list', { after: listed('registry.k8s.io/*') }, /^loss: .*NeverVerifyAllowlistedImages/],
    ['leave the list', { before: listed('registry.local:5000/web'), after: listed('registry.k8s.io/*') }, /^loss: /],
    ['may have records on the host', { after: always, records: null }, /^warning: .*is unknown/],
  ])('%s', (_, given, expected) => {
    expect(risksOf(given)).toEqual([expect.stringMatching(expected)]);
  });

  it.each<[string, Given]>([
    ['the kubelet pulled them', { after: always, records: ['registry.local:5000/web'] }],
    ['they are in the list', { after: listed('registry.local:5000/web') }],
    ['a pattern of the list contains them', { after: listed('registry.local:5000/*') }],
    ['they are pulled at each start', { after: always, images: [{ image: 'web', pullPolicy: 'Always' }] }],
    ['the policy was as strict before', { before: always, after: listed('other') }],
    ['preloaded images are trusted', { after: DEFAULTS, before: always }],
  ])('are usable if %s', (_, given) => {
    expect(risksOf(given)).toEqual([]);
  });
});

it('reads the records of the kubelet', async () => {
  const record = {
    kind: 'ImagePulledRecord',
    imageRef: 'sha256:a',
    credentialMapping: { 'registry.local/web': { nodePodsAccessible: true } },
  };
  const host = fakeHost({ files: { '/var/lib/kubelet/image_manager/pulled/sha256-aa': `${JSON.stringify(record)}\n` } });
  const facts = await readRiskFacts(host, { before: DEFAULTS, after: always, rootDir: '/var/lib/kubelet', given: {}, hidden: [] });
  expect(facts.pulledImages).toEqual(['registry.local/web']);
});

it.each([
  ['web', 'web'],
  ['a:5000/web', 'a:5000/web'],
  ['a:5000/web:1', 'a:5000/web'],
  ['a/web:1@sha256:00', 'a/web'],
])('the name of %s is %s', (image, name) => {
  expect(nameOf(image)).toBe(name);
});
