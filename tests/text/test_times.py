"""Relative and absolute times, resolved against the time at which they were said."""

from __future__ import annotations

import cProfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remegraph.text.times import describe, parse_range, resolve, time_words

pytestmark = pytest.mark.requirement("R14")

SHANGHAI = timezone(timedelta(hours=8))
SAID = datetime(2023, 5, 10, 14, 30, tzinfo=SHANGHAI)  # a Wednesday

# What is said; what of it is the time; when that begins and ends (the first moment after it); its kind.
ENGLISH = """
I went to the support group yesterday. | yesterday | 2023-05-09 | 2023-05-10 | day
What a day today was! | today | 2023-05-10 | 2023-05-11 | day
See you tomorrow. | tomorrow | 2023-05-11 | 2023-05-12 | day
We fly the day after tomorrow. | the day after tomorrow | 2023-05-12 | 2023-05-13 | day
It broke the day before yesterday. | the day before yesterday | 2023-05-08 | 2023-05-09 | day
I dreamt of it last night. | last night | 2023-05-09 18:00 | 2023-05-10 | range
I cook tonight. | tonight | 2023-05-10 18:00 | 2023-05-11 | range
This morning I ran. | This morning | 2023-05-10 05:00 | 2023-05-10 12:00 | range
Yesterday evening it rained. | Yesterday evening | 2023-05-09 18:00 | 2023-05-10 | range
Call me tomorrow afternoon, please. | tomorrow afternoon | 2023-05-11 12:00 | 2023-05-11 18:00 | range
Last week was hard. | Last week | 2023-05-01 | 2023-05-08 | week
I am busy this week. | this week | 2023-05-08 | 2023-05-15 | week
Next week I start. | Next week | 2023-05-15 | 2023-05-22 | week
That was the week before last. | the week before last | 2023-04-24 | 2023-05-01 | week
I leave the week after next. | the week after next | 2023-05-22 | 2023-05-29 | week
Last month we moved. | Last month | 2023-04-01 | 2023-05-01 | month
We meet next month. | next month | 2023-06-01 | 2023-07-01 | month
I graduated last year. | last year | 2022-01-01 | 2023-01-01 | year
Next year we marry. | Next year | 2024-01-01 | 2025-01-01 | year
We hiked last weekend. | last weekend | 2023-05-06 | 2023-05-08 | range
This past weekend I slept. | This past weekend | 2023-05-06 | 2023-05-08 | range
This weekend I rest. | This weekend | 2023-05-13 | 2023-05-15 | range
Two weekends ago we sailed. | Two weekends ago | 2023-04-29 | 2023-05-01 | range
I saw her last Wednesday. | last Wednesday | 2023-05-03 | 2023-05-04 | day
Last Fri. we danced. | Last Fri. | 2023-05-05 | 2023-05-06 | day
The exam is this Friday. | this Friday | 2023-05-12 | 2023-05-13 | day
On Friday I went home. | On Friday | 2023-05-05 | 2023-05-06 | day
See you on Friday. | on Friday | 2023-05-12 | 2023-05-13 | day
Tuesday next week works. | Tuesday next week | 2023-05-16 | 2023-05-17 | day
We lost Saturday night. | Saturday night | 2023-05-06 18:00 | 2023-05-07 | range
I quit two weeks ago. | two weeks ago | 2023-04-26 | 2023-04-27 | day
A couple of days ago it snowed. | A couple of days ago | 2023-05-08 | 2023-05-09 | day
Ten days ago I fell. | Ten days ago | 2023-04-30 | 2023-05-01 | day
We met 3 years ago. | 3 years ago | 2020-01-01 | 2021-01-01 | year
We met six months ago. | six months ago | 2022-11-01 | 2022-12-01 | month
She left an hour ago. | an hour ago | 2023-05-10 13:30 | 2023-05-10 13:31 | instant
She left half an hour ago. | half an hour ago | 2023-05-10 14:00 | 2023-05-10 14:01 | instant
In 3 days we fly. | In 3 days | 2023-05-13 | 2023-05-14 | day
The baby comes in two months. | in two months | 2023-07-01 | 2023-08-01 | month
Back in twenty minutes! | in twenty minutes | 2023-05-10 14:50 | 2023-05-10 14:51 | instant
A week from now I know more. | A week from now | 2023-05-17 | 2023-05-18 | day
Over the past week I read. | the past week | 2023-05-03 | 2023-05-10 14:30 | range
In the last 3 months I grew. | the last 3 months | 2023-02-10 | 2023-05-10 14:30 | range
The next two weeks are full. | The next two weeks | 2023-05-10 14:30 | 2023-05-25 | range
It was December 30th. | December 30th | 2022-12-30 | 2022-12-31 | day
On May 7, 2022 we won. | On May 7, 2022 | 2022-05-07 | 2022-05-08 | day
The 5th of June 2021 it was. | The 5th of June 2021 | 2021-06-05 | 2021-06-06 | day
On Monday, 8 May 2023 I ran. | On Monday, 8 May 2023 | 2023-05-08 | 2023-05-09 | day
Due 2023-05-07 or never. | 2023-05-07 | 2023-05-07 | 2023-05-08 | day
At 2023-05-07T15:30:00 it failed. | 2023-05-07T15:30:00 | 2023-05-07 15:30 | 2023-05-07 15:31 | instant
Signed 13/05/2023 in Rome. | 13/05/2023 | 2023-05-13 | 2023-05-14 | day
In May 2023 we moved. | May 2023 | 2023-05-01 | 2023-06-01 | month
It opens in July. | July | 2023-07-01 | 2023-08-01 | month
We wed in 2019. | 2019 | 2019-01-01 | 2020-01-01 | year
From 3 to 5 June I am away. | 3 to 5 June | 2023-06-03 | 2023-06-06 | range
June 3-9 is taken. | June 3-9 | 2023-06-03 | 2023-06-10 | range
It lasts from May to July 2023. | May to July 2023 | 2023-05-01 | 2023-08-01 | range
Between May 13 and May 19 I rest. | May 13 and May 19 | 2023-05-13 | 2023-05-20 | range
I have lived here since March. | March | 2023-03-01 | 2023-04-01 | month
In early June we plant. | early June | 2023-06-01 | 2023-06-11 | range
At the end of last month I paid. | the end of last month | 2023-04-30 | 2023-05-01 | day
Last summer we sailed. | Last summer | 2022-06-01 | 2022-09-01 | range
She came last Christmas. | last Christmas | 2022-12-25 | 2022-12-26 | day
Meet me tomorrow at 3:15 pm. | tomorrow at 3:15 pm | 2023-05-11 15:15 | 2023-05-11 15:16 | instant
Lunch is at noon tomorrow. | at noon tomorrow | 2023-05-11 12:00 | 2023-05-11 12:01 | instant
"""

CHINESE = """
昨天去了公园 | 昨天 | 2023-05-09 | 2023-05-10 | day
今天天气很好 | 今天 | 2023-05-10 | 2023-05-11 | day
我明天出发 | 明天 | 2023-05-11 | 2023-05-12 | day
前天下雨了 | 前天 | 2023-05-08 | 2023-05-09 | day
大前天开始发烧 | 大前天 | 2023-05-07 | 2023-05-08 | day
后天考试 | 后天 | 2023-05-12 | 2023-05-13 | day
大后天见 | 大后天 | 2023-05-13 | 2023-05-14 | day
昨日已付款 | 昨日 | 2023-05-09 | 2023-05-10 | day
今早跑步了 | 今早 | 2023-05-10 05:00 | 2023-05-10 12:00 | range
昨晚没睡好 | 昨晚 | 2023-05-09 18:00 | 2023-05-10 | range
明晚一起吃饭 | 明晚 | 2023-05-11 18:00 | 2023-05-12 | range
明天上午开会 | 明天上午 | 2023-05-11 06:00 | 2023-05-11 12:00 | range
昨天的下午很热 | 昨天的下午 | 2023-05-09 12:00 | 2023-05-09 18:00 | range
明天下午三点开会 | 明天下午三点 | 2023-05-11 15:00 | 2023-05-11 15:01 | instant
昨晚八点半到家 | 昨晚八点半 | 2023-05-09 20:30 | 2023-05-09 20:31 | instant
今晚12点截止 | 今晚12点 | 2023-05-10 18:00 | 2023-05-11 | range
后天早上9点15分出发 | 后天早上9点15分 | 2023-05-12 09:15 | 2023-05-12 09:16 | instant
上周很忙 | 上周 | 2023-05-01 | 2023-05-08 | week
这周要交报告 | 这周 | 2023-05-08 | 2023-05-15 | week
本周末去爬山 | 本周末 | 2023-05-13 | 2023-05-15 | range
下周开始实习 | 下周 | 2023-05-15 | 2023-05-22 | week
上上周回的家 | 上上周 | 2023-04-24 | 2023-05-01 | week
下下周出差 | 下下周 | 2023-05-22 | 2023-05-29 | week
下个星期放假 | 下个星期 | 2023-05-15 | 2023-05-22 | week
上周三看了牙医 | 上周三 | 2023-05-03 | 2023-05-04 | day
下周五聚餐 | 下周五 | 2023-05-19 | 2023-05-20 | day
下个星期二体检 | 下个星期二 | 2023-05-16 | 2023-05-17 | day
这周日搬家 | 这周日 | 2023-05-14 | 2023-05-15 | day
星期五有空吗 | 星期五 | 2023-05-12 | 2023-05-13 | day
周末想去看电影 | 周末 | 2023-05-13 | 2023-05-15 | range
上周末在杭州 | 上周末 | 2023-05-06 | 2023-05-08 | range
上个周末下雪 | 上个周末 | 2023-05-06 | 2023-05-08 | range
上个月换了工作 | 上个月 | 2023-04-01 | 2023-05-01 | month
这个月很忙 | 这个月 | 2023-05-01 | 2023-06-01 | month
下个月结婚 | 下个月 | 2023-06-01 | 2023-07-01 | month
下个月5号交房租 | 下个月5号 | 2023-06-05 | 2023-06-06 | day
上个月底辞职 | 上个月底 | 2023-04-30 | 2023-05-01 | day
去年毕业 | 去年 | 2022-01-01 | 2023-01-01 | year
前年买的车 | 前年 | 2021-01-01 | 2022-01-01 | year
明年去日本 | 明年 | 2024-01-01 | 2025-01-01 | year
去年5月认识的 | 去年5月 | 2022-05-01 | 2022-06-01 | month
今年五月七日出生 | 今年五月七日 | 2023-05-07 | 2023-05-08 | day
去年夏天在海边 | 去年夏天 | 2022-06-01 | 2022-09-01 | range
去年国庆节去了西安 | 去年国庆节 | 2022-10-01 | 2022-10-02 | day
三天前买的 | 三天前 | 2023-05-07 | 2023-05-08 | day
3天以后回来 | 3天以后 | 2023-05-13 | 2023-05-14 | day
两周后考试 | 两周后 | 2023-05-24 | 2023-05-25 | day
两个星期之前分手 | 两个星期之前 | 2023-04-26 | 2023-04-27 | day
两个月前开始学 | 两个月前 | 2023-03-01 | 2023-04-01 | month
十年前来的 | 十年前 | 2013-01-01 | 2014-01-01 | year
半年前做的手术 | 半年前 | 2022-11-01 | 2022-12-01 | month
十分钟前打过电话 | 十分钟前 | 2023-05-10 14:20 | 2023-05-10 14:21 | instant
半小时后到 | 半小时后 | 2023-05-10 15:00 | 2023-05-10 15:01 | instant
过去三天没吃药 | 过去三天 | 2023-05-07 | 2023-05-10 14:30 | range
最近一个月在减肥 | 最近一个月 | 2023-04-10 | 2023-05-10 14:30 | range
未来两周都没空 | 未来两周 | 2023-05-10 14:30 | 2023-05-25 | range
5月7日见过 | 5月7日 | 2023-05-07 | 2023-05-08 | day
15号发工资 | 15号 | 2023-05-15 | 2023-05-16 | day
2023年5月7日签约 | 2023年5月7日 | 2023-05-07 | 2023-05-08 | day
二〇二一年三月八日 | 二〇二一年三月八日 | 2021-03-08 | 2021-03-09 | day
2022年10月开业 | 2022年10月 | 2022-10-01 | 2022-11-01 | month
2019年入职 | 2019年 | 2019-01-01 | 2020-01-01 | year
六月份开学 | 六月份 | 2023-06-01 | 2023-07-01 | month
5月初种花 | 5月初 | 2023-05-01 | 2023-05-11 | range
5月1日到5月3日放假 | 5月1日到5月3日 | 2023-05-01 | 2023-05-04 | range
5月1日至3日放假 | 5月1日至3日 | 2023-05-01 | 2023-05-04 | range
自去年以来一直在学 | 去年 | 2022-01-01 | 2023-01-01 | year
圣诞节送的礼物 | 圣诞节 | 2022-12-25 | 2022-12-26 | day
後天下午兩點見 | 後天下午兩點 | 2023-05-12 14:00 | 2023-05-12 14:01 | instant
會議在2023-05-07舉行 | 2023-05-07 | 2023-05-07 | 2023-05-08 | day
"""

NO_TIMES = """
I may march on, the sun will rise.
She read it in three days.
It cost 2023 dollars and 12.5 points.
Deliver it on 03/04/2023.
On 30 February it freezes.
I run every Tuesday, on Sundays too.
99999999 years ago there was nothing.
Second place, last but not least.
我有两只猫，一点也不贵
坐15号线，在第3号窗口
每周三开会，一个星期三次
我有三点建议
上月球要多少天
周末人太多
The party is next Friday.
Camping next weekend?
I saw her last Tuesday.
I went there last March.
A few days ago she called.
I was born on 5 May.
My birthday is 3 June.
The call is at 3pm.
Doors open at half past eleven at night.
On Mondays and Thursdays I swim.
We had to cancel Friday.
I was supposed to fly on Thursday.
The vet said to come back on Friday.
"I'll pay you back tomorrow," he wrote.
He keeps saying he will fix it tomorrow.
I bought nothing like there's no tomorrow.
The last Sunday of July was hot.
He was away for two weeks.
I cleaned the house in three hours.
You can learn it in three days.
We saw Wednesday on television.
几天前丢了钥匙
去年年底搬家
下午3:30有课
凌晨两点醒了
十一点半才到家
两三天前吃坏了肚子
Jonas, KAS-233, 9 October: one prefix per test.
A new record on Sunday: 46:55!
Final score of Saturday's match: 3-2.
普拉提以后礼拜三想去就去
我自己91年1月28的
手术做完三天后就出院了
农历三月初三去踏青
八月十五回家吃饭
腊月二十三祭灶
我生日是5月3号
周二和周四有课
隔周五大扫除
本来周四要飞的
他说“明天还你钱”
看了《七月与安生》
先週の金曜日と3日前
Wir haben im Mai geheiratet, am 5. Mai, in august.
以前年度的数据
I wish it were Friday already.
If I won the lottery tomorrow I would quit.
This time last year I could not walk.
It's been three weeks today.
要是明天放假就好了
如果後天中樂透我就辭職
小週末喝一杯
去年这个时候我在住院
8号给儿子办百日宴
I had hoped to be done by Friday.
三年前的今天我们认识的
眼看就是周五了
2010年代的老歌
She left over a week ago.
We used to meet on Friday.
The third Friday is the 17th.
may to october I never go without it
小时候周五都去外婆家
二月三十日
Friday Night Lights made me cry.
A week ago Monday I fell.
It was a week yesterday that she left.
上一季的剧情更好看
有人点〈九月的高跟鞋〉
做了9/15题
3/20的学生没来
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text.strip()).replace(tzinfo=SHANGHAI)


@pytest.mark.parametrize("line", lines(ENGLISH) + lines(CHINESE))
def test_a_time_is_what_was_meant_when_it_was_said(line: str) -> None:
    """A message of May that says "yesterday" means a day of May, whenever it is read again."""
    text, spoken, begins, ends, kind = (part.strip() for part in line.split("|"))

    (found,) = resolve(text, SAID)

    assert (found.text, found.kind) == (spoken, kind)
    assert (found.begins, found.ends) == (moment(begins), moment(ends))
    assert text[found.start : found.end] == spoken


@pytest.mark.parametrize("text", lines(NO_TIMES))
def test_what_is_no_time_is_left_alone(text: str) -> None:
    """A wrong date in memory is worse than none."""
    assert resolve(text, SAID) == []


# Said on Saturday, 22 November 2025, in the evening; what is meant, first day and last.
TENSES = """
We went skiing in February. | 2025-02-01 | 2025-02-28
In February we'll go skiing. | 2026-02-01 | 2026-02-28
I quit smoking in January. | 2025-01-01 | 2025-01-31
What did I do in February? | 2025-02-01 | 2025-02-28
What did my sister say about it in May? | 2025-05-01 | 2025-05-31
I did have lunch with Bob in January. | 2025-01-01 | 2025-01-31
What didn't we have in February? | 2025-02-01 | 2025-02-28
I did my homework and have a party in May. | 2026-05-01 | 2026-05-31
We have lived here since May. | 2025-05-01 | 2025-05-31
She's due in May. | 2026-05-01 | 2026-05-31
I moved this summer. | 2025-06-01 | 2025-08-31
We're getting married on September 20. | 2026-09-20 | 2026-09-20
We got married on September 20. | 2025-09-20 | 2025-09-20
On Monday I saw her. | 2025-11-17 | 2025-11-17
I'll see her on Monday. | 2025-11-24 | 2025-11-24
I heard the shop is closed on Monday. | 2025-11-24 | 2025-11-24
I booked a table for Friday. | 2025-11-28 | 2025-11-28
They moved it to Wednesday. | 2025-11-26 | 2025-11-26
The talk on 3 December was cancelled. | 2025-12-03 | 2025-12-03
I'm not here on the 30th. | 2025-11-30 | 2025-11-30
Monday's meeting ran over. | 2025-11-17 | 2025-11-17
Mum's flight lands Wednesday morning. | 2025-11-26 | 2025-11-26
A week on Friday we fly. | 2025-12-05 | 2025-12-05
The wedding is on 12 April next year. | 2026-04-12 | 2026-04-12
We wed in May last year. | 2024-05-01 | 2024-05-31
We move a fortnight on Monday. | 2025-12-08 | 2025-12-08
We fly Friday 12th. | 2025-12-12 | 2025-12-12
Q2 was hard. | 2025-04-01 | 2025-06-30
From Monday to Friday I was ill. | 2025-11-17 | 2025-11-21
It is on Wednesday, 3 December, at 8:30. | 2025-12-03 | 2025-12-03
The milk was fine (Friday, 21 November 2025). | 2025-11-21 | 2025-11-21
二月份我们去滑雪了 | 2025-02-01 | 2025-02-28
打算二月去滑雪 | 2026-02-01 | 2026-02-28
她是三月查出来的 | 2025-03-01 | 2025-03-31
周三之前给我 | 2025-11-26 | 2025-11-26
周三去看了牙 | 2025-11-19 | 2025-11-19
上周一直在忙 | 2025-11-10 | 2025-11-16
12月3号周三早上8点出发 | 2025-12-03 | 2025-12-03
12月5號的演唱會取消了 | 2025-12-05 | 2025-12-05
民國114年12月1日生效 | 2025-12-01 | 2025-12-01
聽日要返工 | 2025-11-23 | 2025-11-23
11/28（五）聚餐 | 2025-11-28 | 2025-11-28
月底交 | 2025-11-30 | 2025-11-30
第三季度业绩不错 | 2025-07-01 | 2025-09-30
My party is a fortnight tomorrow. | 2025-12-07 | 2025-12-07
We move tomorrow week. | 2025-11-30 | 2025-11-30
She's coming Tuesday week. | 2025-12-02 | 2025-12-02
The first half of next year is full. | 2026-01-01 | 2026-06-30
We met on the 5th of last month. | 2025-10-05 | 2025-10-05
打算明年上半年还清 | 2026-01-01 | 2026-06-30
去年下半年瘦了八公斤 | 2024-07-01 | 2024-12-31
明年第二季搬到內湖 | 2026-04-01 | 2026-06-30
雙十節那天他要結婚 | 2026-10-10 | 2026-10-10
繳納期限115/2/3 | 2026-02-03 | 2026-02-03
元旦那天有空吗 | 2026-01-01 | 2026-01-01
呢個禮拜日得閒 | 2025-11-23 | 2025-11-23
舊年六月返嚟 | 2024-06-01 | 2024-06-30
I saw Priya Monday and she was tired. | 2025-11-17 | 2025-11-17
I'm seeing Priya Monday, bring the charger. | 2025-11-24 | 2025-11-24
School's back on the 6th. | 2025-12-06 | 2025-12-06
The scaffolding stays up until Thursday. | 2025-11-27 | 2025-11-27
I stayed until Thursday. | 2025-11-20 | 2025-11-20
By Tuesday I want all boxes labelled. | 2025-11-25 | 2025-11-25
We put an offer in two months ago. | 2025-09-01 | 2025-09-30
Thursday just gone we skated. | 2025-11-20 | 2025-11-20
A week ago yesterday I fell. | 2025-11-14 | 2025-11-14
We met in the summer of '98. | 1998-06-01 | 1998-08-31
下个季度开始考核 | 2026-01-01 | 2026-03-31
上一季的奖金还没发 | 2025-07-01 | 2025-09-30
三月才換的輪胎 | 2025-03-01 | 2025-03-31
三月去東京的機票開賣了 | 2026-03-01 | 2026-03-31
10/28寄的包裹還沒到 | 2025-10-28 | 2025-10-28
二二八那天去環湖了 | 2025-02-28 | 2025-02-28
七一嗰日去咗長洲 | 2025-07-01 | 2025-07-01
"""


@pytest.mark.parametrize("line", lines(TENSES))
def test_the_tense_of_a_clause_says_which_of_two_days_is_meant(line: str) -> None:
    """What is told in the past lies in the past, what is planned does not; an explicit date beats the words beside it."""
    text, first, last = (part.strip() for part in line.split("|"))

    (found,) = resolve(text, datetime(2025, 11, 22, 21, 40, tzinfo=SHANGHAI))

    assert (str(found.begins.date()), str((found.ends - timedelta(seconds=1)).date())) == (first, last)


UNSURE = """
Can you pull Q2 headcount by site into a table?
Could you please send me the May invoice?
奶奶的寿宴，十二月三号，我爸把任务派给我了
停藥滿一個月之前不可以喝酒
"""


@pytest.mark.parametrize("text", lines(UNSURE))
def test_where_signs_speak_against_each_other_no_day_is_named(text: str) -> None:
    """A wrong date is stated as a fact; a missing one is read from the words."""
    assert resolve(text, datetime(2025, 11, 22, 21, 40, tzinfo=SHANGHAI)) == []


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("On 4 November he wrote 'I'll pay you tomorrow'.", ["2025-11-04", "2025-11-05"]),
        ("Her note of 4 November says “paid yesterday”.", ["2025-11-04", "2025-11-03"]),
        ("他11月4号发的消息说“后天到”", ["2025-11-04", "2025-11-06"]),
        ("她11月4號留的字條寫「昨天已付清」", ["2025-11-04", "2025-11-03"]),
        ("On 4 November we met. He wrote 'I'll pay you tomorrow'.", ["2025-11-04"]),
        ("On 4 November she was at a talk called “Tomorrow in Tokyo”.", ["2025-11-04"]),
    ],
)
def test_what_is_quoted_counts_from_the_day_on_which_it_was_written_where_that_is_told(
    text: str, days: Sequence[str]
) -> None:
    """A promise of the fourth to pay "tomorrow" is three weeks old."""
    found = resolve(text, datetime(2025, 11, 22, 21, 40, tzinfo=SHANGHAI))
    assert [str(each.begins.date()) for each in found] == days


def test_a_question_since_when_lasts_up_to_now() -> None:
    """What somebody did since March is more than what they did in March."""
    found = parse_range("What have I done since March?", SAID)
    asked = parse_range("自去年以来我一直在学什么", SAID)

    assert found is not None
    assert (found.begins, found.ends) == (moment("2023-03-01"), SAID)
    assert asked is not None
    assert asked.ends == SAID


def test_what_is_a_time_is_known_though_not_which() -> None:
    """Knowledge that is shared names no time, be it certain or not."""
    text = "We meet next Friday at 3pm, 上周三晚上 too."

    assert [text[start:end] for start, end in time_words(text)] == ["next Friday at 3pm", "上周三晚上"]


def test_several_times_in_one_text_are_found_in_order() -> None:
    """A message may tell of two events."""
    found = resolve("Yesterday I slept, 后天 I fly, and next year I marry.", SAID)

    assert [mention.text for mention in found] == ["Yesterday", "后天", "next year"]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_results_are_in_the_zone_of_the_message(zone: str) -> None:
    """Late in the evening in New York, it is tomorrow already in Greenwich."""
    said = datetime(2023, 3, 12, 23, 30, tzinfo=ZoneInfo(zone))

    (found,) = resolve("It happened today.", said)

    assert found.begins.isoformat()[:16] == "2023-03-12T00:00"
    assert found.begins.tzinfo == said.tzinfo


@pytest.mark.parametrize("text", ["Slides are due tomorrow", "明早还得交方案", "A week tomorrow I move"])
def test_tomorrow_said_after_midnight_may_be_the_day_that_follows_sleep(text: str) -> None:
    """Who is still up means by "tomorrow" what begins with the morning, or the day after; nobody else can tell."""
    assert resolve(text, SAID.replace(hour=0)) == []
    assert resolve(text, SAID.replace(hour=5)) != []
    assert resolve("昨晚没睡, it was late last night", SAID.replace(hour=0)) != []


def test_hours_are_counted_across_the_change_to_summer_time() -> None:
    """Three hours ago is three hours, though the clock went four."""
    said = datetime(2023, 3, 12, 4, 30, tzinfo=ZoneInfo("America/New_York"))

    (found,) = resolve("It broke 3 hours ago.", said)

    assert said.astimezone(UTC) - found.begins.astimezone(UTC) == timedelta(hours=3)


def test_last_weekend_said_on_a_sunday_is_the_one_before() -> None:
    """The weekend that goes on is this weekend."""
    sunday = SAID + timedelta(4)

    assert resolve("last weekend", sunday)[0].begins == moment("2023-05-06")
    assert resolve("this weekend", sunday)[0].begins == moment("2023-05-13")


def test_a_question_gets_its_widest_time() -> None:
    """What was said last month on a Tuesday is looked for in the whole month, not lost."""
    found = parse_range("What did we do last month, was it on Tuesday?", SAID)

    assert found is not None
    assert (found.text, found.begins, found.ends) == ("last month", moment("2023-04-01"), moment("2023-05-01"))
    assert parse_range("What is my name?", SAID) is None


def test_the_anchor_line_tells_date_weekday_time_and_zone() -> None:
    """A model can only resolve "Friday" if it knows what day it was."""
    assert describe(datetime(2023, 5, 8, 13, 56, tzinfo=UTC)) == "2023-05-08 Monday 13:56 +00:00"
    assert describe(SAID) == "2023-05-10 Wednesday 14:30 +08:00"


WORDS = st.sampled_from([part for line in lines(ENGLISH) + lines(CHINESE) for part in line.split("|")[0].split()])


@given(
    st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.lists(WORDS).map("".join)),
    st.datetimes(timezones=st.just(UTC)),
)
def test_any_text_at_any_time_gives_well_formed_times(text: str, said: datetime) -> None:
    """No message, however odd, stops the capture."""
    end = 0
    for mention in resolve(text, said):
        assert end <= mention.start < mention.end
        assert mention.text == text[mention.start : mention.end]
        assert mention.begins < mention.ends
        end = mention.end


@pytest.mark.parametrize(
    "row", ["{at},2026-03-05,7.13,4\n", "| 3 May | lunch {at} ", "on Monday {at} ", '"5月" {at} ', "明天 {at} "]
)
def test_a_table_of_times_takes_as_long_as_it_is(row: str) -> None:
    """Somebody pastes their bank statement, and the process that reads it has other things to do."""

    def calls(rows: int) -> int:
        profile = cProfile.Profile(builtins=False)
        profile.runcall(resolve, "".join(row.format(at=at) for at in range(rows)), SAID)
        return sum(entry.callcount for entry in profile.getstats())

    resolve("on Monday", SAID)
    few = calls(200)
    assert calls(800) < 5 * few
