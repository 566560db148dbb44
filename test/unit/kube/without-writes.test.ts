import { expect, it } from 'vitest';
import { withoutWrites } from '../../../src/kube/without-writes.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';

const REF = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'a' } as const;
const OBJECT = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'a' }, data: { key: 'old' } };
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'default', name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};

it('stores no write, and sends reads and reviews', async () => {
  const cluster = fakeCluster({ objects: [OBJECT, POD] });
  const [object, pod] = await Promise.all([cluster.get(REF), cluster.get({ ...REF, kind: 'Pod', name: 'p' })]);
  const revision = cluster.store.revision();
  const dry = withoutWrites({ ...cluster, untilInterrupted: cluster, forPolls: cluster });
  const other = { ...OBJECT, metadata: { ...OBJECT.metadata, name: 'b' } };
  expect(await dry.create(other)).toEqual(other);
  expect(await dry.update({ ...OBJECT, data: {} })).toMatchObject({ data: {} });
  await dry.patch(REF, 'merge', { data: { key: 'new' } });
  expect(await dry.patch(REF, 'merge', { data: { key: 'new' } }, { dryRun: true })).toMatchObject({ data: { key: 'new' } });
  expect(await dry.delete(REF)).toEqual(object);
  expect(await dry.delete({ ...REF, name: 'b' })).toBeNull();
  expect(await dry.evict({ namespace: 'default', name: 'p', uid: pod?.metadata.uid ?? '' })).toEqual({ kind: 'evicted' });
  await (dry.forPolls ?? dry).update(OBJECT);
  await (dry.untilInterrupted ?? dry).update(OBJECT);
  expect(cluster.store.revision()).toBe(revision);
  expect(await dry.get(REF)).toEqual(object);
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: { name: '' } };
  expect(await dry.create(review)).toMatchObject({ status: { userInfo: { username: 'kubernetes-admin' } } });
});
